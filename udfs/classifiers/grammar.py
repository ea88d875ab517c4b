"""The grammar of a decoder's answer: `<answer>1main2other…</answer>`, and which tokens may come next."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

LABELS = ("main", "other")
OPENING, CLOSING = "<answer>", "</answer>"


class State(NamedTuple):
    """How far an answer has come: labels decided; the label begun, if any; characters of the part read."""

    decided: int = 0
    label: str = ""
    offset: int = 0


class Grammar:
    """Answers about some items; each state is followed by exactly the tokens that can still become one."""

    def __init__(self, items: Sequence[str]) -> None:
        texts = [OPENING + items[0], *items[1:], CLOSING] if items else [OPENING + CLOSING]
        self._texts = texts  # what stands before each label, and the end

    @property
    def regex(self) -> str:
        """The answers as a regular expression; items are digits, so nothing needs escaping."""
        return f"({'|'.join(LABELS)})".join(self._texts)

    @property
    def longest(self) -> int:
        """Characters of the longest answer: it has no more tokens."""
        return len(max(LABELS, key=len).join(self._texts))

    def margins(self, state: State, text: str, followers: Iterable[str], logits: Sequence[float]) -> Iterator[float]:
        """Yield a margin for each label that a token begins: of all tokens that begin it, main against other."""
        written = self.begun(state, text)
        if not written:
            return
        rivals = [(self.begun(state, follower), logit) for follower, logit in zip(followers, logits, strict=True)]
        top = max(logits)
        for number, label in enumerate(written):
            sums = dict.fromkeys(LABELS, 1e-9)
            for labels, logit in rivals:
                if len(labels) > number:
                    sums[labels[number]] += math.exp(logit - top)
            margin = math.log(sums["main"]) - math.log(sums["other"])
            # The token that was written is the likeliest one, which decides, whatever all tokens together say.
            yield max(margin, 1e-6) if label == "main" else min(margin, -1e-6)

    def labels(self, answer: str) -> list[str] | None:
        """Read the labels of a whole answer, in order; None if it is none."""
        state = self.advance(State(), answer)
        return self.begun(State(), answer) if state is not None and self.is_complete(state) else None

    def advance(self, state: State, text: str) -> State | None:
        """Read characters; None if they can't come there."""
        decided, label, offset = state
        for character in text:
            if label:
                if label[offset] != character:
                    return None
                offset += 1
                if offset == len(label):
                    decided, label, offset = decided + 1, "", 0
                continue
            before = self._texts[decided] if decided < len(self._texts) else ""
            if offset < len(before):
                if before[offset] != character:
                    return None
                offset += 1
                continue
            if decided + 1 >= len(self._texts):
                return None
            label = next((name for name in LABELS if name[0] == character), "")
            if not label:
                return None
            offset = 1
        return State(decided, label, offset)

    def begun(self, state: State, text: str) -> list[str]:
        """List the labels that a text begins, which can follow a state."""
        labels: list[str] = []
        for character in text:
            after = self.advance(state, character)
            if after is None:
                break
            if after.label and not state.label:
                labels.append(after.label)
            state = after
        return labels

    def is_complete(self, state: State) -> bool:
        """Tell whether the answer has ended."""
        return state.decided == len(self._texts) - 1 and state.offset == len(self._texts[-1])

    def followers(self, state: State, tokens: Mapping[str, Iterable[tuple[int, str]]]) -> dict[int, str]:
        """Find the tokens that can come next, with their texts. tokens: (id, text) by first character."""
        return {
            token: text
            for first, candidates in tokens.items()
            if self.advance(state, first) is not None
            for token, text in candidates
            if self.advance(state, text) is not None
        }


def plain_tokens(vocabulary: Mapping[str, int], special: Iterable[int]) -> dict[str, list[tuple[int, str]]]:
    """Sort out the tokens that can be part of an answer, by first character.

    vocabulary: of a byte-level BPE, which writes visible ASCII characters as themselves.
    """
    allowed = frozenset(OPENING + CLOSING + "".join(LABELS) + "0123456789")
    excluded = frozenset(special)
    found: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for text, token in vocabulary.items():
        if text and allowed.issuperset(text) and token not in excluded:
            found[text[0]].append((token, text))
    return {first: sorted(tokens) for first, tokens in found.items()}

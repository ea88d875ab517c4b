"""The grammar of a decoder's answer: `<answer>1main2other…</answer>`, and which tokens may come next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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

"""The decoder classifier: a language model that answers with one label for each block, as Dripper was trained to.

The answer is a fixed text with one choice a block. The fast mode writes that text itself and asks the model at the
choices only; the exact mode lets it write token by token within the published grammar, to check the fast one by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from templates.dom import PageError
from templates.labels import Labels
from udfs.classifiers import checkpoint, prompts, vllm_backend
from udfs.classifiers.encoder import split_blocks
from udfs.classifiers.grammar import LABELS, OPENING, Grammar, State, plain_tokens
from udfs.classifiers.items import ITEM_ID, Answer, label_pages
from udfs.classifiers.reader import Reader

if TYPE_CHECKING:
    from udfs.input.pages import Page

CONTEXT_TOKENS = 32_768
BATCH_TOKENS = 65_536
_GROUP_PAGES = 16
_SYSTEM = "You are a helpful assistant."
_HEAD, _TAIL = '<html><head><meta charset="utf-8"></head><body>', "</body></html>"

Wrapping = Literal["published", "single"]


class Question(NamedTuple):
    """What a model is asked at once: a page or, of a long one, a part; items: their ids, in order."""

    page: int
    tokens: list[int]
    items: list[str]


class Decoder:
    """Qwen3- and Hunyuan-family language models, from a folder or a name on the Hugging Face hub.

    prompt: a name in `prompts.SHA256` or a file. wrapping: `published` applies the chat template twice, as the
    code does that the models were evaluated with; `single` once. mode: `fast` or `exact`. context_tokens: of prompt
    and answer; longer pages are asked about in parts. batch_tokens: padded tokens of one batch. Decoding is greedy
    whatever the checkpoint's generation settings say: they are never read. backend: `transformers`, or `vllm`, which
    has one mode of its own.
    """

    def __init__(
        self, name: str, path: str, device: str = "", dtype: str = "", prompt: str = "short_compact",
        wrapping: str = "published", mode: str = "fast", context_tokens: int = CONTEXT_TOKENS,
        batch_tokens: int = BATCH_TOKENS, backend: str = "transformers",
    ) -> None:  # fmt: skip
        if backend not in ("transformers", "vllm"):
            raise ValueError(f"no backend {backend!r}: use transformers or vllm")
        if wrapping not in ("published", "single"):
            raise ValueError(f"no wrapping {wrapping!r}: use published or single")
        if mode not in ("fast", "exact"):
            raise ValueError(f"no mode {mode!r}: use fast or exact")
        self.name = name
        self._path, self._device, self._dtype, self._prompt = path, device, dtype, prompt
        self._wrapping, self._mode, self._backend = wrapping, mode, backend
        self._context_tokens, self._batch_tokens = context_tokens, batch_tokens
        self._model: Any = None
        self._tokenizer: Any = None
        self._text = ""
        self._plain: dict[str, list[tuple[int, str]]] = {}
        self.loads = 0
        self.steps = 0

    def label(self, pages: Sequence[Page]) -> list[Labels | PageError]:
        """Label pages, in order; one that can't be labelled is a PageError value."""
        return label_pages(pages, self.answer, _GROUP_PAGES)

    def answer(self, simplified: Sequence[str]) -> list[Answer]:
        """Compute main probabilities of the items of simplified pages, in order."""
        self.load()
        answers: list[dict[str, float]] = [{} for _ in simplified]
        errors: dict[int, PageError] = {}
        questions = [question for number, text in enumerate(simplified) for question in self.questions(number, text)]
        for batch in self._batches(questions):
            for question, margins in self._ask(batch):
                if isinstance(margins, PageError):
                    errors[question.page] = margins
                else:
                    answers[question.page].update(zip(question.items, map(_logistic, margins), strict=True))
        return [errors.get(number, said) for number, said in enumerate(answers)]

    def load(self) -> None:
        """Load prompt and weights, unless they are there. Raises CheckpointError or ValueError."""
        if self._model is not None:
            return
        self._text = prompts.read(self._prompt)
        if self._backend == "vllm":
            limits = self._context_tokens, self._batch_tokens
            self._model = vllm_backend.load(self._path, self._device, self._dtype, *limits)
            self._tokenizer = self._model.get_tokenizer()
            self.loads += 1
            return
        on = checkpoint.device(self._device, self._dtype)
        self._model, self._tokenizer = checkpoint.load(self._path, "decoder", on)
        self._plain = plain_tokens(self._tokenizer.get_vocab(), self._tokenizer.all_special_ids)
        self.loads += 1

    def unload(self) -> None:
        """Give back the memory of the weights."""
        if self._model is not None:
            self._model = None
            checkpoint.release()

    def prompt(self, simplified: str) -> str:
        """Write what the model is fed for a simplified page. Nothing else ever applies a template."""
        text = self._text + simplified
        template = self._tokenizer.apply_chat_template
        if self._wrapping == "published":
            text = template([{"role": "user", "content": text}], tokenize=False, enable_thinking=False)
        messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": text}]
        wrapped: str = template(messages, tokenize=False, enable_thinking=False, add_generation_prompt=True)
        return wrapped

    def questions(self, page: int, simplified: str) -> list[Question]:
        """Turn a page into questions that fit the context: one or, of a long page, several, block by block."""
        blocks = split_blocks(simplified)
        if not blocks:
            return []
        found = [(match[1], block) for block in blocks if (match := ITEM_ID.search(block))]
        whole = self._question(page, simplified, [item for item, _ in found])
        if self._length(whole) <= self._context_tokens:
            return [whole]
        found[-1] = (found[-1][0], found[-1][1].removesuffix(_TAIL))
        return list(self._parts(page, found))

    def _batches(self, questions: Sequence[Question]) -> Iterable[list[Question]]:
        if self._backend == "vllm":  # which makes its own batches
            return [[*questions]] if questions else []
        return _batched(questions, self._batch_tokens if self._mode == "fast" else 0)

    def _parts(self, page: int, blocks: Sequence[tuple[str, str]]) -> Iterator[Question]:
        items = [item for item, _ in blocks]
        question = self._question(page, f"{_HEAD}{''.join(text for _, text in blocks)}{_TAIL}", items)
        excess = self._length(question) / self._context_tokens
        if excess <= 1:
            yield question
        elif len(blocks) == 1:  # a single block, such as a table, that is too long: its end goes
            kept = max(100, int(len(blocks[0][1]) / excess * 0.9))
            if kept < len(blocks[0][1]):
                yield from self._parts(page, [(blocks[0][0], blocks[0][1][:kept])])
        else:
            count = min(len(blocks), math.ceil(excess))
            size = math.ceil(len(blocks) / count)
            for start in range(0, len(blocks), size):
                yield from self._parts(page, blocks[start : start + size])

    def _question(self, page: int, simplified: str, items: list[str]) -> Question:
        return Question(page, self._tokenizer(self.prompt(simplified))["input_ids"], items)

    def _length(self, question: Question) -> int:
        return len(question.tokens) + len(self._tokens("".join(f"{item}other" for item in question.items))) + 16

    def _tokens(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return tokens

    def _ask(self, batch: list[Question]) -> Iterator[tuple[Question, list[float] | PageError]]:
        """Ask a batch; halve it where the device's memory is too small."""
        if self._backend == "vllm":
            asked = [(question.tokens, question.items) for question in batch]
            yield from zip(batch, vllm_backend.ask(self._model, asked, self._context_tokens), strict=True)
            return
        import torch

        try:
            with torch.inference_mode():
                margins = self.fast(batch) if self._mode == "fast" else [self.write(one)[0] for one in batch]
        except torch.OutOfMemoryError:
            margins = None
        if margins is not None:
            yield from zip(batch, margins, strict=True)
            return
        checkpoint.release()  # here, since within `except` the error still holds what did not fit
        if len(batch) == 1:
            yield batch[0], PageError("out_of_memory")
            return
        self._batch_tokens = max(self._context_tokens, self._batch_tokens // 2)
        half = len(batch) // 2
        yield from self._ask(batch[:half])
        yield from self._ask(batch[half:])

    def fast(self, batch: list[Question]) -> list[list[float]]:
        """Decide every label by the first tokens of `main` and `other`; margins (main minus other), by item."""
        import torch

        spelled = {label: self._tokens(label) for label in LABELS}
        choices = torch.tensor([spelled[label][0] for label in LABELS], device=self._model.device)
        if choices[0] == choices[1]:
            raise checkpoint.CheckpointError(f"{self._path}: both labels begin with one token; use mode=exact")
        reader = Reader(self._model, len(batch))
        margins: list[list[float]] = [[] for _ in batch]
        fed = [question.tokens + self._tokens(OPENING) for question in batch]
        for number in range(max(len(question.items) for question in batch)):
            for row, question in enumerate(batch):
                fed[row] += self._tokens(question.items[number]) if number < len(question.items) else []
            self.steps += 1
            hidden = reader.read(fed)
            logits = self._logits(hidden, choices)
            found = (logits[:, 0] - logits[:, 1]).tolist()
            fed = [[] for _ in batch]
            for row, question in enumerate(batch):
                if number < len(question.items):
                    margins[row].append(found[row])
                    fed[row] = [*spelled["main" if found[row] > 0 else "other"]]
        return margins

    def write(self, question: Question) -> tuple[list[float], list[int]]:
        """Write an answer greedily, token by token, within the grammar.

        Returns margins by item (positive: main) at the token that begins its label, and the tokens.
        """
        import torch

        grammar = Grammar(question.items)
        reader = Reader(self._model, 1)
        state, fed = State(), question.tokens
        margins: list[float] = []
        tokens: list[int] = []
        while not grammar.is_complete(state):
            followers = grammar.followers(state, self._plain)
            if not followers:
                raise checkpoint.CheckpointError(f"{self._path}: its tokens can't spell the answer")
            candidates = torch.tensor(list(followers), device=self._model.device)
            self.steps += 1
            logits = self._logits(reader.read([fed]), candidates)[0].tolist()
            best = max(range(len(logits)), key=logits.__getitem__)
            text = list(followers.values())[best]
            margins.extend(grammar.margins(state, text, followers.values(), logits))
            state = grammar.advance(state, text) or state
            tokens.append(list(followers)[best])
            fed = tokens[-1:]
        return margins, tokens

    def _logits(self, hidden: Any, tokens: Any) -> Any:
        """Compute the logits of a few tokens alone: (rows, tokens), float32."""
        head = self._model.get_output_embeddings()
        logits = hidden @ head.weight[tokens].T
        return (logits if head.bias is None else logits + head.bias[tokens]).float()


def _logistic(margin: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, margin))))


def _batched(questions: Sequence[Question], tokens: int) -> Iterator[list[Question]]:
    """Group questions of like length, longest first, into batches of at most so many tokens with padding."""
    batch: list[Question] = []
    for question in sorted(questions, key=lambda question: len(question.tokens), reverse=True):
        if batch and (len(batch) + 1) * len(batch[0].tokens) > tokens:
            yield batch
            batch = []
        batch.append(question)
    if batch:
        yield batch

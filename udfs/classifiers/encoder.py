"""The encoder classifier: token classification over simplified HTML, as Pulpie's Orange models were trained for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from templates.dom import PageError
from templates.labels import Labels
from udfs.classifiers import checkpoint
from udfs.classifiers.items import ITEM_ID, Answer, label_pages

if TYPE_CHECKING:
    from udfs.input.pages import Page

SEPARATOR = "<|sep|>"
"""Follows each block; the model's answer is read at it."""

CHUNK_TOKENS = 8192
BATCH_TOKENS = 65_536
_GROUP_PAGES = 8  # while the GPU reads one group, the CPU prepares the next


class Chunk(NamedTuple):
    """What a model reads at once: tokens; the places of its separators; the blocks that these follow."""

    page: int
    tokens: list[int]
    separators: list[int]
    blocks: list[int]


class Encoder:
    """EuroBERT-family token classification, from a folder or a name on the Hugging Face hub.

    chunk_tokens: what the model reads at once, at most. batch_tokens: padded tokens of one batch; halved when the
    device runs out of memory. The model is loaded with the first page. Raises CheckpointError then.
    """

    def __init__(
        self, name: str, path: str, device: str = "", dtype: str = "", chunk_tokens: int = CHUNK_TOKENS,
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:  # fmt: skip
        self.name = name
        self._path, self._device, self._dtype = path, device, dtype
        self._chunk_tokens, self._batch_tokens = chunk_tokens, batch_tokens
        self._model: Any = None
        self._tokenizer: Any = None
        self.loads = 0
        self.batches = 0

    def label(self, pages: Sequence[Page]) -> list[Labels | PageError]:
        """Label pages, in order; one that can't be labelled is a PageError value."""
        return label_pages(pages, self.answer, _GROUP_PAGES)

    def answer(self, simplified: Sequence[str]) -> list[Answer]:
        """Compute main probabilities of the items of simplified pages, in order."""
        import torch

        answers: list[Answer] = []
        for text, logits in zip(simplified, self.logits(simplified), strict=True):
            if isinstance(logits, PageError):
                answers.append(logits)
                continue
            items = [ITEM_ID.search(block) for block in split_blocks(text)]
            values = torch.softmax(logits, -1)[:, 1].tolist()
            answers.append({item[1]: value for item, value in zip(items, values, strict=True) if item})
        return answers

    def logits(self, simplified: Sequence[str]) -> list[Any]:
        """Compute the logits (other, main) of every block: a float32 tensor (blocks, 2) a page, or a PageError."""
        import torch

        self.load()
        counts: list[int] = []
        chunks: list[Chunk] = []
        for number, text in enumerate(simplified):
            blocks = split_blocks(text)
            counts.append(len(blocks))
            chunks.extend(self.chunks(number, blocks))
        results: list[Any] = [torch.zeros(count, 2) for count in counts]
        for batch in batched(chunks, self._batch_tokens):
            for chunk, values in self._run(batch):
                if isinstance(values, PageError):
                    results[chunk.page] = values
                elif not isinstance(results[chunk.page], PageError):
                    results[chunk.page][chunk.blocks] = values
        return results

    def load(self) -> None:
        """Load the weights, unless they are there. Raises CheckpointError."""
        if self._model is not None:
            return
        on = checkpoint.device(self._device, self._dtype)
        self._model, self._tokenizer = checkpoint.load(self._path, "encoder", on)
        self.loads += 1
        if SEPARATOR not in self._tokenizer.get_vocab():
            self._tokenizer.add_special_tokens({"additional_special_tokens": [SEPARATOR]})
        if len(self._tokenizer) > self._model.config.vocab_size:
            self._model.resize_token_embeddings(len(self._tokenizer))

    def parts(self) -> tuple[Any, Any]:
        """Return model and tokenizer, loaded. Raises CheckpointError."""
        self.load()
        return self._model, self._tokenizer

    def unload(self) -> None:
        """Give back the memory of the weights."""
        if self._model is not None:
            self._model = None
            checkpoint.release()

    def chunks(self, page: int, blocks: list[str]) -> list[Chunk]:
        """Turn the blocks of a page into what the model reads."""
        if not blocks:
            return []
        tokens: list[list[int]] = self._tokenizer(blocks, add_special_tokens=False)["input_ids"]
        separator = self._tokenizer.convert_tokens_to_ids(SEPARATOR)
        ends = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        return pack(page, tokens, separator, ends, self._chunk_tokens)

    def _run(self, batch: list[Chunk]) -> Iterator[tuple[Chunk, Any]]:
        """Read a batch; halve it where the device's memory is too small."""
        import torch

        try:
            values: list[Any] | None = self.forward(batch)
        except torch.OutOfMemoryError:
            values = None
        if values is not None:
            yield from zip(batch, values, strict=True)
            return
        checkpoint.release()  # here, since within `except` the error still holds what did not fit
        if len(batch) == 1:
            yield batch[0], PageError("out_of_memory")
            return
        self._batch_tokens = max(self._chunk_tokens, self._batch_tokens // 2)
        half = len(batch) // 2
        yield from self._run(batch[:half])
        yield from self._run(batch[half:])

    def forward(self, batch: list[Chunk]) -> list[Any]:
        """Read a batch at once: the logits of each chunk's blocks."""
        import torch

        with torch.inference_mode():
            return [values.cpu() for values in self.read(batch)]

    def read(self, batch: list[Chunk]) -> list[Any]:
        """Do what `forward` does, on the device, and with gradients if torch keeps them."""
        import torch

        self.batches += 1
        longest = max(len(chunk.tokens) for chunk in batch)
        pad = self._model.config.pad_token_id or 0
        rows = [chunk.tokens + [pad] * (longest - len(chunk.tokens)) for chunk in batch]
        device = self._model.device
        mask = None  # SDPA is fastest without one
        if any(len(chunk.tokens) < longest for chunk in batch):
            ones = [[1] * len(chunk.tokens) + [0] * (longest - len(chunk.tokens)) for chunk in batch]
            mask = torch.tensor(ones, device=device)
        logits = self._model(input_ids=torch.tensor(rows, device=device), attention_mask=mask).logits.float()
        return [row[torch.tensor(chunk.separators, device=device)] for row, chunk in zip(logits, batch, strict=True)]


def split_blocks(simplified: str) -> list[str]:
    """Cut simplified HTML into its blocks, each from its own tag to the next block's; the last has all the rest."""
    starts = [simplified.rfind("<", 0, match.start()) for match in ITEM_ID.finditer(simplified)]
    ends = [*starts[1:], len(simplified)]
    return [simplified[start:end].strip() for start, end in zip(starts, ends, strict=False)]


def pack(
    page: int, blocks: Sequence[list[int]], separator: int, ends: tuple[int | None, int | None], limit: int
) -> list[Chunk]:
    """Pack blocks of tokens, each with its separator, into chunks of at most `limit` tokens, in order.

    ends: the tokens that begin and end a chunk. A block that is too long for a chunk is cut, and begins one.
    """
    begin, end = ([token] if token is not None else [] for token in ends)
    budget = limit - len(begin) - len(end)
    chunks: list[Chunk] = []
    room = 0
    for number, tokens in enumerate(blocks):
        if len(tokens) + 1 > room or not chunks:
            chunks.append(Chunk(page, [*begin], [], []))
            room = budget
            tokens = tokens[: budget - 1]
        chunk = chunks[-1]
        chunk.tokens.extend(tokens)
        chunk.separators.append(len(chunk.tokens))
        chunk.tokens.append(separator)
        chunk.blocks.append(number)
        room -= len(tokens) + 1
    for chunk in chunks:
        chunk.tokens.extend(end)
    return chunks


def batched(chunks: Sequence[Chunk], tokens: int) -> Iterator[list[Chunk]]:
    """Group chunks of like length, longest first, into batches of at most so many tokens with padding."""
    batch: list[Chunk] = []
    for chunk in sorted(chunks, key=lambda chunk: len(chunk.tokens), reverse=True):
        if batch and (len(batch) + 1) * len(batch[0].tokens) > tokens:
            yield batch
            batch = []
        batch.append(chunk)
    if batch:
        yield batch

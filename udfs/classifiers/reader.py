"""Reading with a language model: what it has read stays with it, so that each token is read once."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any


class Reader:
    """A model with the keys and values of what it has read, for some rows that grow unequally.

    Rows are padded behind each read; what is padding stays masked, and positions count real tokens only.
    """

    def __init__(self, model: Any, rows: int) -> None:
        import transformers

        self._model = model.base_model
        self._device = model.device
        self._cache = transformers.DynamicCache()
        parameters = inspect.signature(self._model.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"  # until transformers 5.2x
        self._mask: list[list[int]] = [[] for _ in range(rows)]
        self._lengths = [0] * rows

    def read(self, fed: Sequence[list[int]]) -> Any:
        """Read more tokens of each row, possibly none; the last hidden state of each: (rows, hidden)."""
        import torch

        device = self._device
        longest = max(map(len, fed))
        is_first = not any(self._lengths)
        positions = [list(range(length, length + longest)) for length in self._lengths]
        for row, tokens in enumerate(fed):
            self._mask[row] += [1] * len(tokens) + [0] * (longest - len(tokens))
            self._lengths[row] += len(tokens)
        hidden = self._model(
            input_ids=torch.tensor([tokens + [0] * (longest - len(tokens)) for tokens in fed], device=device),
            # At first, what is behind a row's end is masked by causality alone; without a mask, SDPA needs no
            # memory for it.
            attention_mask=None if is_first else torch.tensor(self._mask, device=device),
            position_ids=torch.tensor(positions, device=device),
            use_cache=True,
            **{self._cache_name: self._cache},
        ).last_hidden_state
        last = torch.tensor([max(0, len(tokens) - 1) for tokens in fed], device=device)
        return hidden[torch.arange(len(fed), device=device), last]

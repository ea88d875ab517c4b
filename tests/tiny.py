"""Tiny things to train: pages whose main content is easy to tell, and an encoder's checkpoint with random weights."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

Row = dict[str, Any]

_WORDS = (
    "amber river stone lantern copper winter market engine bridge garden letter shelter forest paper railway".split()
)


def row(site: int, page: int, **fields: Any) -> Row:
    """A page of a host: two paragraphs and a heading are main; menu, list and footer are not."""
    rng = random.Random(f"{site}/{page}")

    def text(words: int) -> str:
        return " ".join(rng.choice(_WORDS) for _ in range(words))

    main = [f"<h1>{text(4)}</h1>", *(f"<p>{text(9)}</p>" for _ in range(2 + page % 2))]
    menu = "".join(f"<li><a href='/{n}'>{text(1)}</a></li>" for n in range(3))
    html = (
        f"<html><body><nav class='m{site}'><ul>{menu}</ul></nav><main>{''.join(main)}</main>"
        f"<div class='side'><a href='/x'>{text(3)}</a></div><footer class='legal'>{text(5)}</footer></body></html>"
    )
    gold = " ".join(part.split(">")[1].split("<")[0] for part in main)
    made = {"url": f"https://www.site{site}.example/{page}", "html": html, "gold_text": gold}
    return made | {"gold_paths": ["/html/body/main"], "set": "toy", "split": "train"} | fields


def write(path: Path, rows: Sequence[Row]) -> Path:
    """Write a corpus: a line for each row, compressed if the name says so."""
    data = "".join(json.dumps(one) + "\n" for one in rows).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def corpus(folder: Path, sites: int = 8, pages: int = 3) -> list[Path]:
    """Write a file for each host; the last quarter of them is of the split dev."""
    return [
        write(
            folder / f"{site}.jsonl",
            [row(site, page, split="dev" if site >= sites * 3 // 4 else "train") for page in range(pages)],
        )
        for site in range(sites)
    ]


def need_models() -> None:
    """Skip the test unless the extra `models` is installed."""
    for module in ("torch", "transformers", "selectolax.parser"):
        pytest.importorskip(module, reason="comes with the extra `models`")


def checkpoint(folder: Path, seed: int = 0, vocabulary: int = 300, hidden: int = 32, has_head: bool = True) -> str:
    """Make a checkpoint of the EuroBERT family with random weights and a tokenizer of its own: its folder."""
    torch, transformers, tokenizers = map(pytest.importorskip, ("torch", "transformers", "tokenizers"))
    words = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<|begin|>", "<|end|>", "<|mask|>", "<|sep|>"]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = words
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = words.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(_texts(), trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|begin|>", eos_token="<|end|>", pad_token="<|end|>"
    )
    config = transformers.EuroBertConfig(
        vocab_size=len(fast), hidden_size=hidden, intermediate_size=2 * hidden, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, bos_token_id=0, eos_token_id=1, pad_token_id=1, mask_token_id=2,
        num_labels=2, rope_parameters={"rope_type": "default", "rope_theta": 250000.0},
    )  # fmt: skip
    torch.manual_seed(seed)
    kind = transformers.EuroBertForTokenClassification if has_head else transformers.EuroBertModel
    kind(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return str(folder)


def _texts() -> Iterator[str]:
    yield from (row(site, 0)["html"] for site in range(4))

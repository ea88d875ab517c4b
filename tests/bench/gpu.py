"""Time the model classifiers on real architecture sizes with random weights: ./build.sh bench gpu [--help].

Prints, as JSON, for each size: pages and tokens a second, peak memory (of the GPU, or of the process on a CPU), and
the share of the time in which no batch is on the device, since pages are prepared, tokenized or given their labels.
Labels mean nothing; speed does not depend on weights. `--sizes smoke` is a tiny size that runs on any CPU.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from udfs.classifiers.decoder import Decoder
from udfs.classifiers.encoder import SEPARATOR, Encoder
from udfs.input.pages import Page
from udfs.simplification.simplify import simplify

_CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_SPECIAL = ["<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>", SEPARATOR]


def sizes() -> dict[str, tuple[str, dict[str, int]]]:
    """Architectures by name: kind of model and its config. EuroBERT's three sizes, Qwen3-0.6B, Hunyuan-0.5B."""

    def config(hidden: int, layers: int, heads: int, groups: int, inner: int, words: int, head: int) -> dict[str, int]:
        return {
            "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": groups, "intermediate_size": inner, "vocab_size": words, "head_dim": head,
        }  # fmt: skip

    return {
        "smoke-encoder": ("eurobert", config(64, 2, 4, 4, 128, 4096, 16)),
        "smoke-decoder": ("qwen3", config(64, 2, 4, 2, 128, 4096, 16)),
        "eurobert-210m": ("eurobert", config(768, 12, 12, 12, 3072, 128_256, 64)),
        "eurobert-610m": ("eurobert", config(1152, 26, 18, 6, 4096, 128_256, 64)),
        "eurobert-2.1b": ("eurobert", config(2304, 32, 18, 6, 6144, 128_256, 128)),
        "qwen3-0.6b": ("qwen3", config(1024, 28, 16, 8, 3072, 151_936, 128)),
        "hunyuan-0.5b": ("hunyuan", config(1024, 24, 16, 8, 3584, 120_818, 128)),
    }


def build(kind: str, config: dict[str, int], texts: Iterable[str], folder: Path, dtype: str) -> str:
    """Write a checkpoint of random weights, with a tokenizer trained on the pages; return the kind of classifier."""
    import torch
    import transformers

    kit: Any = importlib.import_module("tokenizers")
    tokenizer = kit.Tokenizer(kit.models.BPE())
    tokenizer.pre_tokenizer = kit.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = kit.decoders.ByteLevel()
    trainer = kit.trainers.BpeTrainer(
        vocab_size=min(8192, config["vocab_size"]), special_tokens=_SPECIAL,
        initial_alphabet=kit.pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|bos|>", eos_token="<|eos|>", pad_token="<|eos|>", chat_template=_CHAT
    )
    fast.save_pretrained(folder)
    rope = {"rope_theta": 250_000.0, "rope_type": "default"}
    common = config | {"rope_parameters": rope, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 1}
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        if kind == "eurobert":
            model: Any = transformers.EuroBertForTokenClassification(transformers.EuroBertConfig(**common))
        elif kind == "qwen3":
            model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(tie_word_embeddings=True, **common))
        else:
            made = transformers.HunYuanDenseV1Config(tie_word_embeddings=True, **common)
            model = transformers.HunYuanDenseV1ForCausalLM(made)
    finally:
        torch.set_default_dtype(before)
    model.save_pretrained(folder)
    return "encoder" if kind == "eurobert" else "decoder"


def measure(classifier: Encoder | Decoder, pages: Sequence[Page], tokens: int) -> dict[str, float]:
    """Label all pages once, after a first batch that loads and warms up."""
    import torch

    classifier.label(pages[:4])
    name = "forward" if isinstance(classifier, Encoder) else "fast"  # each ends when its results are on the CPU
    read = getattr(classifier, name)
    busy = 0.0

    def timed(batch: Any) -> Any:
        nonlocal busy
        start = time.perf_counter()
        results = read(batch)
        busy += time.perf_counter() - start
        return results

    setattr(classifier, name, timed)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    labels = classifier.label(pages)
    seconds = time.perf_counter() - start
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else own
    return {
        "pages": len(labels), "seconds": round(seconds, 3), "pages_per_second": round(len(labels) / seconds, 2),
        "tokens_per_second": round(tokens / seconds), "device_waits": round(1 - busy / seconds, 3),
        "peak_memory_gib": round(peak / 2**30, 2),
    }  # fmt: skip


def generated(count: int) -> list[str]:
    """Pages of about 130 blocks, each its own."""
    return [
        "<html><head><title>t</title></head><body>"
        + "".join(
            f"<div class='c{at % 7}'><h2>Head {at} of {number}</h2><p>{f'Word{number} some text here {at} ' * 9}</p>"
            f"<ul><li><a href='/{at}'>link {at}</a></li><li>item</li></ul></div>"
            for at in range(44)
        )
        + "</body></html>"
        for number in range(count)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="smoke", help=f"comma-separated beginnings of: {', '.join(sizes())}")
    parser.add_argument("--pages", type=int, default=64, help="pages to label")
    parser.add_argument("--html", type=Path, help="JSONL file with `html`, instead of generated pages")
    parser.add_argument("--device", default="", help="torch device (default: the GPU, if there is one)")
    parser.add_argument("--dtype", default="", help="torch dtype (default: bfloat16 on a GPU, else float32)")
    parser.add_argument("--max-batch-tokens", type=int, default=65_536, help="padded tokens of one batch")
    parser.add_argument("--prompt", default="short_compact", help="prompt of decoders: a name or a file")
    options = parser.parse_args()
    if missing := [name for name in ("torch", "transformers", "selectolax") if find_spec(name) is None]:
        parser.error(f"no {' and no '.join(missing)} here: ./build.sh setup models")
    if options.html:
        lines = options.html.read_text(encoding="utf-8").splitlines()
        htmls = [json.loads(line)["html"] for line in lines[: options.pages]]
    else:
        htmls = generated(options.pages)
    pages = [Page(f"http://example.com/{at}", "", at, html, f"{at:016x}", None, None) for at, html in enumerate(htmls)]
    texts = [simplify(page.html)[0] for page in pages]
    from udfs.classifiers.checkpoint import device

    on = device(options.device, options.dtype)
    for name, (kind, config) in sizes().items():
        if not any(name.startswith(wanted) for wanted in options.sizes.split(",")):
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = build(kind, config, texts, Path(folder), on.dtype)
            common = {"device": on.name, "dtype": on.dtype, "batch_tokens": options.max_batch_tokens}
            classifier: Encoder | Decoder
            if made == "encoder":
                classifier = Encoder(name, folder, **common)
            else:
                classifier = Decoder(name, folder, prompt=options.prompt, **common)
            tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(f"{folder}/tokenizer.json")
            tokens = sum(len(encoding.ids) for encoding in tokenizer.encode_batch(texts))
            print(json.dumps({"size": name, "device": on.name, "dtype": on.dtype} | measure(classifier, pages, tokens)))


if __name__ == "__main__":
    main()

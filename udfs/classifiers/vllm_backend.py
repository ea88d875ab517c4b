"""The vLLM backend of the decoder: the same questions, answered greedily within the same grammar.

vLLM returns the text of an answer, so a label's probability is 1 or 0. It is an extra: pip install 'webstencil[vllm]'.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from templates.dom import PageError
from udfs.classifiers.checkpoint import CheckpointError
from udfs.classifiers.grammar import Grammar

_SURE = 60.0  # a margin whose probability is 1


def load(path: str, device: str, dtype: str, context_tokens: int, batch_tokens: int) -> Any:
    """Load a checkpoint into vLLM, with nothing of its own code, pickles or generation settings.

    Raises CheckpointError where vLLM is not installed or the device is no GPU.
    """
    kind, _, number = (device or "cuda").partition(":")
    if kind != "cuda":
        raise CheckpointError(f"vLLM has no use for the device {device!r}: use cuda, or backend=transformers")
    if number:  # vLLM takes the first GPU that its processes see; they start with this environment
        os.environ["CUDA_VISIBLE_DEVICES"] = number
    try:
        import vllm
    except ImportError as error:
        raise CheckpointError(f"backend=vllm needs vLLM: pip install 'webstencil[vllm]' ({error})") from error
    return vllm.LLM(
        model=path, dtype=dtype or "bfloat16", max_model_len=context_tokens, max_num_batched_tokens=batch_tokens,
        enable_chunked_prefill=True, load_format="safetensors", trust_remote_code=False, generation_config="vllm",
        seed=0,
    )  # fmt: skip


def ask(
    model: Any, questions: Sequence[tuple[list[int], list[str]]], context_tokens: int
) -> list[list[float] | PageError]:
    """Answer questions, each the tokens of a prompt and the items in it: margins by item (positive: main)."""
    grammars = [Grammar(items) for _, items in questions]
    prompts = [{"prompt_token_ids": tokens} for tokens, _ in questions]
    sampling = [
        _greedy(grammar, min(grammar.longest, context_tokens - len(tokens)))
        for grammar, (tokens, _) in zip(grammars, questions, strict=True)
    ]
    outputs = model.generate(prompts, sampling, use_tqdm=False)
    return [_margins(grammar, output.outputs[0].text) for grammar, output in zip(grammars, outputs, strict=True)]


def _greedy(grammar: Grammar, tokens: int) -> Any:
    """Make sampling parameters: all that a checkpoint might set otherwise is set."""
    from vllm import SamplingParams, sampling_params

    if hasattr(sampling_params, "StructuredOutputsParams"):
        within = {"structured_outputs": sampling_params.StructuredOutputsParams(regex=grammar.regex)}
    else:  # before 0.11
        within = {"guided_decoding": sampling_params.GuidedDecodingParams(regex=grammar.regex)}
    return SamplingParams(
        n=1, temperature=0.0, top_p=1.0, top_k=-1, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0,
        frequency_penalty=0.0, seed=0, max_tokens=tokens, **within,
    )  # fmt: skip


def _margins(grammar: Grammar, text: str) -> list[float] | PageError:
    labels = grammar.labels(text)
    if labels is None:
        return PageError("no_answer")
    return [_SURE if label == "main" else -_SURE for label in labels]

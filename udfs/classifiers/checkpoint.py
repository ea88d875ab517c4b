"""Checkpoints: published weights, loaded by the classes of transformers alone."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

_MISSING = "models need torch, transformers and selectolax below 1: pip install 'webstencil[models]' ({})"


class CheckpointError(ValueError):
    """A checkpoint that can't be used as asked; the message says what to do."""


@dataclass(frozen=True)
class Device:
    """Where and how a model computes: a torch device and the name of a torch dtype."""

    name: str
    dtype: str


def device(name: str = "", dtype: str = "") -> Device:
    """Choose device and dtype: the GPU if there is one, bfloat16 there and float32 on a CPU.

    Raises CheckpointError where there is no such device or dtype, or the extra `models` is not installed.
    """
    try:
        import selectolax.parser  # noqa: F401 - the preprocessing does, at its first page
        import torch
    except ImportError as error:
        raise CheckpointError(_MISSING.format(error)) from error
    if not name:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = name.partition(":")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise CheckpointError(f"no device {name!r}: torch sees {torch.cuda.device_count()} GPUs here; use another one")
    if not dtype:
        dtype = "bfloat16" if name.startswith("cuda") else "float32"
    if dtype not in ("bfloat16", "float16", "float32"):
        raise CheckpointError(f"no dtype {dtype!r}: use bfloat16, float16 or float32")
    return Device(name, dtype)


def release() -> None:
    """Give back the memory of a GPU that nothing uses any more."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def load(path: str, kind: Literal["encoder", "decoder"], on: Device) -> tuple[Any, Any]:
    """Load model and tokenizer from a folder or from a name on the Hugging Face hub, ready to compute.

    Never runs code of a checkpoint, never reads pickles, takes no generation settings from it. The rotary base is
    checked, since some versions of transformers drop it in silence. Raises CheckpointError.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise CheckpointError(_MISSING.format(error)) from error
    transformers.utils.logging.disable_progress_bar()  # executors are silent
    wanted = _read_config(transformers, path)
    config = _native_config(transformers, path, wanted)
    if kind == "encoder":
        maker = transformers.AutoModelForTokenClassification
        if config.num_labels != 2:
            raise CheckpointError(f"{path} has {config.num_labels} labels, not the two `other` and `main`")
    else:
        maker = transformers.AutoModelForCausalLM
    try:
        model = maker.from_pretrained(
            path, config=config, dtype=getattr(torch, on.dtype), attn_implementation="sdpa", use_safetensors=True,
            trust_remote_code=False,
        )  # fmt: skip
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} can't be loaded: {error}") from error
    tokenizer = transformers.AutoTokenizer.from_pretrained(path, trust_remote_code=False)
    return model.to(on.name).eval(), tokenizer


def _read_config(transformers: Any, path: str) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = transformers.PretrainedConfig.get_config_dict(path)[0]
    except OSError as error:
        raise CheckpointError(f"{path} has no config.json that can be read: {error}") from error
    return found


def _native_config(transformers: Any, path: str, wanted: Mapping[str, Any]) -> Any:
    if "model_type" not in wanted:
        raise CheckpointError(
            f"{path} has no config.json with a model_type: give a checkpoint's folder or its hub name"
        )
    kind = str(wanted["model_type"])
    if kind not in transformers.models.auto.configuration_auto.CONFIG_MAPPING:
        raise CheckpointError(
            f"transformers {transformers.__version__} has no class for {kind!r} models ({path}), and code that comes "
            f"with a checkpoint is never run: install a version that has one (EuroBERT: transformers>=5)"
        )
    config = transformers.AutoConfig.from_pretrained(path, trust_remote_code=False)
    rope = dict(wanted.get("rope_parameters") or wanted.get("rope_scaling") or {})
    theta = rope.pop("rope_theta", wanted.get("rope_theta"))
    if theta is None:
        raise CheckpointError(f"{path}/config.json has no rope_theta, neither by itself nor in rope_parameters: add it")
    if isinstance(getattr(config, "rope_parameters", None), dict):
        config.rope_parameters["rope_theta"] = float(theta)
    else:  # transformers 4 ignores rope_parameters
        config.rope_theta = theta
        if rope.get("rope_type", rope.get("type", "default")) != "default":
            config.rope_scaling = rope
    return config

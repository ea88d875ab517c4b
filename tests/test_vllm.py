"""The vLLM backend, with a module in vLLM's place: it can't be installed where there is no GPU."""

from __future__ import annotations

import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from templates.dom import PageError
from udfs.classifiers import from_spec, prompts
from udfs.classifiers.checkpoint import CheckpointError
from udfs.classifiers.decoder import Decoder
from udfs.classifiers.grammar import Grammar

SPEC = "decoder:owner/name?backend=vllm&context_tokens=4096&batch_tokens=8192"
PAGE = '<html><body><p _item_id="1">One</p><p _item_id="2">Two</p></body></html>'
LONG = "".join(f'<p _item_id="{number}">{"Word " * 40}</p>' for number in range(1, 41))


class Tokenizer:
    """One token a character, and a chat template that shows where it was applied."""

    def apply_chat_template(self, messages: list[dict[str, str]], **options: Any) -> str:
        assert options["tokenize"] is False and options["enable_thinking"] is False
        return "".join(f"[{message['role']}]{message['content']}" for message in messages)

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [ord(character) for character in text]}


class Engine:
    """Stands for vllm.LLM: keeps what it is given, and answers `main` to all items, or what it is told to."""

    made: dict[str, Any]
    prompts: list[dict[str, Any]]
    sampling: list[Any]
    answer: str | None = None

    def __init__(self, **options: Any) -> None:
        Engine.made = options

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer()

    def generate(self, prompts: list[dict[str, Any]], sampling: list[Any], use_tqdm: bool) -> list[Any]:
        Engine.prompts, Engine.sampling = prompts, sampling
        answers = [self.answer or given.regex.replace("(main|other)", "main") for given in map(constraint, sampling)]
        return [SimpleNamespace(outputs=[SimpleNamespace(text=answer)]) for answer in answers]


def constraint(sampling: Any) -> Any:
    return getattr(sampling, "structured_outputs", None) or sampling.guided_decoding


@pytest.fixture(params=["StructuredOutputsParams", "GuidedDecodingParams"])
def vllm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vLLM of today or of an older version."""
    module, parameters = ModuleType("vllm"), ModuleType("vllm.sampling_params")
    setattr(parameters, request.param, SimpleNamespace)
    for name, value in (("LLM", Engine), ("SamplingParams", SimpleNamespace), ("sampling_params", parameters)):
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", parameters)
    monkeypatch.setattr(prompts, "read", lambda name: f"<{name}>")
    monkeypatch.setattr(Engine, "answer", None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")


def decoder(spec: str = SPEC) -> Decoder:
    found = from_spec(spec)
    assert isinstance(found, Decoder)
    return found


@pytest.mark.usefixtures("vllm")
def test_nothing_of_the_checkpoint_decides_how_it_is_asked() -> None:
    answers = decoder().answer([PAGE, "<p>no items</p>", PAGE])
    assert answers == [{"1": 1.0, "2": 1.0}, {}, {"1": 1.0, "2": 1.0}]
    assert Engine.made["trust_remote_code"] is False
    assert Engine.made["generation_config"] == "vllm"
    assert Engine.made["load_format"] == "safetensors"
    assert (Engine.made["max_model_len"], Engine.made["max_num_batched_tokens"]) == (4096, 8192)
    text = "".join(map(chr, Engine.prompts[0]["prompt_token_ids"]))
    assert text == f"[system]You are a helpful assistant.[user][user]<short_compact>{PAGE}"
    assert Engine.prompts[0].keys() == {"prompt_token_ids"} and len(Engine.prompts) == 2
    sampling = Engine.sampling[0]
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0.0, 1.0, -1, 0.0)
    assert (sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty) == (1.0, 0.0, 0.0)
    assert constraint(sampling).regex == "<answer>1(main|other)2(main|other)</answer>"
    assert sampling.max_tokens == len("<answer>1other2other</answer>")


@pytest.mark.usefixtures("vllm")
def test_an_answer_that_is_none_is_the_error_of_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "answer", "<answer>1main2ot")
    (answer,) = decoder().answer([PAGE])
    assert isinstance(answer, PageError) and answer.reason == "no_answer"
    monkeypatch.setattr(Engine, "answer", "<answer>1other2main</answer>")
    (answer,) = decoder().answer([PAGE])
    assert answer == {"1": pytest.approx(0.0), "2": 1.0}


@pytest.mark.usefixtures("vllm")
def test_long_pages_are_asked_in_parts() -> None:
    (answer,) = decoder().answer([LONG])
    assert not isinstance(answer, PageError) and list(answer) == [str(number) for number in range(1, 41)]
    assert len(Engine.prompts) > 1
    assert all(len(prompt["prompt_token_ids"]) < 4096 for prompt in Engine.prompts)


@pytest.mark.usefixtures("vllm")
def test_the_gpu_of_the_task_is_the_one_that_the_engine_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    decoder(f"{SPEC}&device=cuda:3").load()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3"
    with pytest.raises(CheckpointError, match="use cuda"):
        decoder(f"{SPEC}&device=cpu").load()


def test_without_vllm_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    monkeypatch.setattr(prompts, "read", lambda name: name)
    with pytest.raises(CheckpointError, match=r"pip install 'webstencil\[vllm\]'"):
        decoder().load()
    with pytest.raises(ValueError, match="use transformers or vllm"):
        from_spec("decoder:x?backend=onnx")


def test_the_regex_and_the_grammar_agree() -> None:
    grammar = Grammar(["1", "2", "13"])
    for text in ("<answer>1main2other13main</answer>", "<answer>1other2other13other</answer>"):
        assert re.fullmatch(grammar.regex, text)
        assert grammar.labels(text) == re.findall("main|other", text)
    for text in ("<answer>1main2other13main", "<answer>1main</answer>", ""):
        assert not re.fullmatch(grammar.regex, text)
        assert grammar.labels(text) is None
    assert grammar.longest == len("<answer>1other2other13other</answer>")

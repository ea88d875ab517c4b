"""train: weights of the embedded classifier, or of an encoder, from pages with ground truth. One machine, no Spark."""

from __future__ import annotations

import dataclasses
import logging
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from spark_jobs.errors import InputError, OutputError, RequestError
from spark_jobs.options import TrainOptions
from templates import storage
from templates.dom import PageError
from udfs.classifiers import checkpoint, from_spec
from udfs.classifiers.encoder import CHUNK_TOKENS, Encoder
from udfs.classifiers.specs import ModelSpec
from udfs.classifiers.specs import parse as parse_spec
from udfs.input.pages import Page, SourceOptions
from udfs.input.sources import list_splits
from udfs.training import corpora, records
from udfs.training.corpora import Corpora, Given
from udfs.training.distillation import softened
from udfs.training.examples import Example, example
from udfs.training.lessons import Lesson, class_weights, lesson

logger = logging.getLogger("stencil.training")

Row = dict[str, Any]
Made = TypeVar("Made", Example, Lesson)

EMBEDDED, ENCODER = ("embedded.safetensors", "embedded.json"), ("model.safetensors", "training.json")
"""The weights and the record of each kind of model, as files in DIR."""

_GROUP_PAGES = 16
_TOLD_PAGES = 500  # pages between two lines of progress


def run(options: TrainOptions) -> list[str]:
    """Train as asked and write DIR; returns what `stencil train` prints. Raises RequestError."""
    try:
        model = _model(options)
        files = EMBEDDED if model is None else ENCODER
        if not options.overwrite and any(storage.exists(storage.join(options.output, name)) for name in files):
            raise OutputError(f"{options.output} holds {' or '.join(files)}: give another directory, or --overwrite")
        checkpoint.device()  # raises without torch, before anything is read
        given = survey(options)
        made, scores = _embedded(options, given) if model is None else _encoder(options, model, given)
    except (ValueError, ImportError) as error:
        hint = ": pip install 'webstencil[models]'" if isinstance(error, ImportError) else ""
        raise RequestError(f"{error}{hint}") from error
    storage.write_json(storage.join(options.output, files[1]), made)
    pages = [f"  {count:>8,}  {reason}" for reason, count in sorted(made["pages"]["left_out"].items())]
    return [
        f"{made['pages']['used']:,} of {made['pages']['read']:,} pages were used; left out:",
        *(pages or ["  none"]),
        "F1 on the development part, by kind of page:",
        *([f"  {value:8.4f}  {kind}" for kind, value in scores.items()] or ["  none: no page is of the split dev"]),
        f"weights and record are in {options.output}: {', '.join(files)}",
    ]


def _model(options: TrainOptions) -> ModelSpec | None:
    """Return the encoder to train, None for `embedded`. Raises ValueError for any other spec, or teacher."""
    model = None if options.model == "embedded" else parse_spec(options.model)
    if options.model != "embedded" and (model is None or model.kind != "encoder"):
        raise ValueError(f"--model {options.model!r} can't be trained: use 'embedded' or 'encoder:PATH'")
    if options.teacher is not None:
        teacher = from_spec(options.teacher)
        if model is not None and not isinstance(teacher, Encoder):
            raise ValueError(f"--teacher {options.teacher!r} can't teach an encoder: use 'encoder:PATH'")
    if model is not None and os.path.realpath(model.path) == os.path.realpath(options.output):
        raise ValueError(f"--output {options.output} is the checkpoint that is trained: give another directory")
    return model


def survey(options: TrainOptions) -> Corpora:
    """Look through the corpora: their digests, and the split of every page. Raises InputError."""
    try:
        paths = [file.path for file in list_splits(options.corpora, SourceOptions(format="jsonl"))]
        splits = {} if options.splits is None else corpora.check_splits(storage.read_json(options.splits))
        given = corpora.survey(paths, splits, options.dev_share)
    except (ValueError, OSError) as error:
        raise InputError(f"--corpora, --splits: {error}") from error
    logger.info("%d of %d pages in %d files may be used", len(given.used), given.read, len(given.files))
    return given


def _embedded(options: TrainOptions, given: Corpora) -> tuple[Row, dict[str, float]]:
    from udfs.training import learning

    left_out: Counter[str] = Counter()
    examples = _in_order(_examples(given, options.teacher, left_out))
    settings = _with_given(learning.Settings(), options, batch_pages=options.batch_pages)
    domains = max(1, len({one.domain for one in examples if one.split == "train"}))
    settings = dataclasses.replace(  # of few domains, a token is known that all of them have
        settings,
        mark_domains=min(domains, settings.mark_domains),
        word_domains=min(domains, settings.word_domains),
    )
    network, curve = learning.train(examples, settings)
    with storage.publish(storage.join(options.output, EMBEDDED[0])) as path, open(path, "wb") as file:
        file.write(records.packed(network.tensors()))
    return _record(options, given, examples, left_out, settings, curve), curve[-1].scores


def _encoder(options: TrainOptions, model: ModelSpec, given: Corpora) -> tuple[Row, dict[str, float]]:
    from udfs.training import finetuning

    asked: Row = dict(model.arguments())
    on = checkpoint.device(asked.pop("device", ""), asked.pop("dtype", ""))
    batches = {"batch_chunks": options.batch_pages, "batch_tokens": asked.get("batch_tokens")}
    settings = _with_given(finetuning.Settings(), options, **batches)
    # Weights stay in full precision, which small steps need; what is computed is not, where the device has less.
    encoder = Encoder(options.model, model.path, on.name, "float32", **asked)
    teacher = None if options.teacher is None else from_spec(options.teacher)
    assert teacher is None or isinstance(teacher, Encoder)
    left_out: Counter[str] = Counter()
    lessons = _in_order(_lessons(given, left_out))
    curve = finetuning.finetune(encoder, lessons, settings, teacher=teacher, autocast=on.dtype == "bfloat16")
    finetuning.save(encoder, options.output)
    record = _record(options, given, lessons, left_out, settings, curve)
    weights = class_weights([one for one in lessons if one.split == "train"])
    chunks = asked.get("chunk_tokens", CHUNK_TOKENS)
    return record | {"class_weights": weights, "dtype": on.dtype, "chunk_tokens": chunks}, curve[-1].scores


def _examples(given: Corpora, teacher: str | None, left_out: Counter[str]) -> Iterator[tuple[bytes, Example]]:
    pages = _read(given, left_out)
    if teacher is None:
        yield from ((page.key, made) for page, made in pages)
        return
    classifier = from_spec(teacher)
    while group := list(islice(pages, _GROUP_PAGES)):
        asked = [(page, made) for page, made in group if made.split == "train"]
        said = classifier.label(
            [Page(made.url, "", 0, page.row["html"], page.key.hex()[:16], None, None) for page, made in asked]
        )
        yield from ((page.key, made) for page, made in group if made.split != "train")
        for (page, made), labels in zip(asked, said, strict=True):
            if isinstance(labels, PageError):
                left_out[f"teacher: {labels.reason}"] += 1
            else:
                yield page.key, softened(made, page.row["html"], labels)


def _lessons(given: Corpora, left_out: Counter[str]) -> Iterator[tuple[bytes, Lesson]]:
    for page, made in _read(given, left_out):
        try:
            yield page.key, lesson(page.row, made)
        except PageError as error:
            left_out[error.reason] += 1


def _read(given: Corpora, left_out: Counter[str]) -> Iterator[tuple[Given, Example]]:
    for number, page in enumerate(given.pages(), 1):
        try:
            yield page, example(page.row, page.site, page.split)
        except PageError as error:
            left_out[error.reason] += 1
        except ValueError as error:
            raise InputError(f"--corpora: the page {page.row.get('url') or page.row.get('id')!r}: {error}") from error
        if number % _TOLD_PAGES == 0:
            logger.info("%d of %d pages are read", number, len(given.used))


def _in_order(made: Iterable[tuple[bytes, Made]]) -> list[Made]:
    """Sort by digest, so that neither the order of files nor their cut decides anything."""
    return [one for _, one in sorted(made, key=lambda keyed: keyed[0])]


def _with_given(settings: Any, options: TrainOptions, **others: int | None) -> Any:
    given = {name: getattr(options, name) for name in ("seed", "epochs", "learning_rate")} | others
    return dataclasses.replace(settings, **{name: value for name, value in given.items() if value is not None})


def _record(
    options: TrainOptions, given: Corpora, made: list[Made], left_out: Counter[str], settings: Any, curve: list[Any]
) -> Row:
    return {
        "command": command(options),
        "files": [{"name": file.name, "sha256": file.digest} for file in given.files],
        "pages": {
            "read": given.read,
            "used": len(made),
            "left_out": dict(given.left_out + left_out),
            "by_kind": records.counts([(one.kind, one.split) for one in made]),
        },
        "settings": dataclasses.asdict(settings),
        "curve": [dataclasses.asdict(epoch) for epoch in curve],
        "scores": curve[-1].scores,
        "versions": records.versions(),
    }


def command(options: TrainOptions) -> str:
    """Return the command of options, one form for all orders of its corpora, without where the output goes."""
    words = ["stencil", "train", "--corpora", *sorted(options.corpora)]
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name not in ("corpora", "output", "overwrite") and value != field.default:
            words += ["--" + field.name.replace("_", "-"), str(value)]
    return shlex.join(words)

"""Fine-tuning of an encoder's checkpoint, by itself or as the student of another encoder.

It reads in training what it will read in use: the published simplified HTML, packed into the same chunks.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import shutil
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from templates.dom import PageError
from udfs.classifiers.checkpoint import CheckpointError
from udfs.classifiers.encoder import Chunk, Encoder, batched, split_blocks
from udfs.training.lessons import NOT_COUNTED, Lesson, class_weights

logger = logging.getLogger("stencil.training")

_GROUP_PAGES = 16
_TOLD_STEPS = 20  # steps between two lines of progress


@dataclass(frozen=True)
class Settings:
    """How a checkpoint is trained; kept in its record.

    learning_rate: its highest, reached in a line over the share `warmup` of all steps; from there a line falls to 0.
    batch_chunks: chunks of one step of the optimizer. batch_tokens: most padded tokens that the device reads at once,
    whose gradients add up over a step. max_norm: of a step's gradient. temperature, teacher_share: of distillation, as
    published for Pulpie: 0.7 KL(teacher, student) at temperature 2, times 4, and 0.3 cross-entropy.
    """

    seed: int = 0
    epochs: int = 3
    learning_rate: float = 5e-5
    weight_decay: float = 0.01
    warmup: float = 0.1
    batch_chunks: int = 16
    batch_tokens: int = 16_384
    max_norm: float = 1.0
    temperature: float = 2.0
    teacher_share: float = 0.7


@dataclass(frozen=True)
class Epoch:
    """A point of the training curve: the mean loss of a step and, on the development part, figures after it.

    scores: token F1 by kind of page. agreement: share of the blocks that get the teacher's label.
    """

    loss: float
    scores: dict[str, float]
    agreement: float | None


def finetune(
    encoder: Encoder, lessons: Sequence[Lesson], settings: Settings, *, teacher: Encoder | None = None,
    autocast: bool = False,
) -> list[Epoch]:  # fmt: skip
    """Train the encoder's model on the lessons of the split `train`; those of `dev` are only scored.

    teacher: gives its weights back once it has read the pages. autocast: compute in bfloat16, as GPUs do it fastest,
    with weights as they were loaded. Returns the training curve.
    Reproducible to the byte on one machine. Raises ValueError where there is nothing to learn, CheckpointError where
    a model can't be loaded or used.
    """
    with _repeatable(settings.seed):
        encoder.load()  # here, since a head that a checkpoint lacks is drawn
        if teacher is not None:
            lessons = with_teacher(lessons, encoder, teacher)
            teacher.unload()
        learned = [one for one in lessons if one.split == "train"]
        held_out = [one for one in lessons if one.split == "dev"]
        course = _Course(encoder, learned, settings, teacher is not None, autocast)
        curve: list[Epoch] = []
        for number in range(1, settings.epochs + 1):
            loss = course.epoch()
            with _mixed(encoder, autocast):
                curve.append(Epoch(loss, *scores(encoder, held_out)))
            logger.info("epoch %d of %d: loss %.4f, F1 %s", number, settings.epochs, loss, curve[-1].scores)
    return curve


def with_teacher(lessons: Sequence[Lesson], student: Encoder, teacher: Encoder) -> list[Lesson]:
    """Put a teacher's logits into lessons; a page that it can't read stays without.

    Raises CheckpointError where the two have not the same tokenizer.
    """
    if student.parts()[1].get_vocab() != teacher.parts()[1].get_vocab():
        raise CheckpointError(
            f"{teacher.name} can't teach {student.name}: their tokenizers differ; take a student of the same family"
        )
    taught: list[Lesson] = []
    for group in _groups(lessons):
        logits = teacher.logits([one.simplified for one in group])
        taught += [
            one if isinstance(said, PageError) else replace(one, teacher=said)
            for one, said in zip(group, logits, strict=True)
        ]
        logger.info("the teacher has read %d of %d pages", len(taught), len(lessons))
    return taught


def scores(encoder: Encoder, lessons: Sequence[Lesson]) -> tuple[dict[str, float], float | None]:
    """Return the mean token F1 by kind of page, and the share of blocks that get the teacher's label if there is one.

    A page that can't be read scores 0.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    same: list[bool] = []
    for group in _groups(lessons):
        for one, logits in zip(group, encoder.logits([one.simplified for one in group]), strict=True):
            if isinstance(logits, PageError):
                found[one.kind].append(0.0)
                continue
            found[one.kind].append(one.f1(logits.argmax(-1).tolist()))
            if one.teacher is not None:
                same += (logits.argmax(-1) == one.teacher.argmax(-1)).tolist()
    means = {kind: round(statistics.fmean(values), 4) for kind, values in sorted(found.items())}
    return means, round(statistics.fmean(same), 4) if same else None


def losses(logits: Any, targets: Any, weights: Any, teacher: Any, temperature: float) -> tuple[Any, Any]:
    """Add up over blocks the weighted cross-entropy with the targets and the divergence from the teacher.

    logits, teacher: (blocks, 2); teacher may be None. weights: of the two classes. The divergence is
    KL(teacher, student) of both at a temperature, times its square, so that its gradients keep their size.
    """
    from torch.nn import functional

    entropy = functional.cross_entropy(logits, targets, weights, ignore_index=NOT_COUNTED, reduction="sum")
    if teacher is None:
        return entropy, logits.new_zeros(())
    said, wanted = (functional.log_softmax(values / temperature, -1) for values in (logits, teacher))
    divergence = functional.kl_div(said, wanted, reduction="sum", log_target=True) * temperature**2
    return entropy, divergence


def save(encoder: Encoder, folder: str) -> None:
    """Write a complete checkpoint: configuration, tokenizer, weights as one safetensors file."""
    model, tokenizer = encoder.parts()
    model.config.id2label = {0: "other", 1: "main"}
    model.config.label2id = {"other": 0, "main": 1}
    model.save_pretrained(folder, max_shard_size="100GB")
    tokenizer.save_pretrained(folder)
    # Some versions write weights for their owner alone, but executors may run as somebody else.
    shutil.copymode(os.path.join(folder, "config.json"), os.path.join(folder, "model.safetensors"))


class _Course:
    """A model in training: its chunks in the order that was drawn, its optimizer, its place in the schedule."""

    def __init__(
        self, encoder: Encoder, lessons: Sequence[Lesson], settings: Settings, is_taught: bool, autocast: bool
    ) -> None:
        import torch

        weights = class_weights(lessons)
        if not any(weights):
            raise ValueError("no page of the split 'train' has a block to learn from")
        self._encoder, self._lessons, self._settings, self._autocast = encoder, lessons, settings, autocast
        self._model = encoder.parts()[0]
        self._weights = torch.tensor(weights, device=self._model.device)
        self._teacher_share = settings.teacher_share if is_taught else 0.0
        self._chunks = [
            chunk
            for number, one in enumerate(lessons)
            for chunk in encoder.chunks(number, split_blocks(one.simplified))
        ]
        self._rng = np.random.default_rng(settings.seed)
        self._optimizer = torch.optim.AdamW(
            [
                {"params": [values for values in self._model.parameters() if values.ndim > 1]},
                {"params": [values for values in self._model.parameters() if values.ndim == 1], "weight_decay": 0.0},
            ],
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
        )
        total = settings.epochs * math.ceil(len(self._chunks) / settings.batch_chunks)
        warm = max(1, round(total * settings.warmup))
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimizer, lambda step: min((step + 1) / warm, (total - step) / max(1, total - warm))
        )

    def epoch(self) -> float:
        """Read every chunk once; the mean loss of a step."""
        import torch

        self._model.train()
        found: list[float] = []
        order = self._rng.permutation(len(self._chunks)).tolist()
        size = self._settings.batch_chunks
        for start in range(0, len(order), size):
            found.append(self._gradients([self._chunks[at] for at in order[start : start + size]]))
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._settings.max_norm)
            self._optimizer.step()
            self._schedule.step()
            self._optimizer.zero_grad()
            if len(found) % _TOLD_STEPS == 0:
                logger.info("step %d of %d: loss %.4f", len(found), math.ceil(len(order) / size), found[-1])
        self._model.eval()
        return statistics.fmean(found)

    def _gradients(self, step: list[Chunk]) -> float:
        """Add up the gradients of a step, batch by batch; returns its loss, a mean over blocks."""
        import torch

        targets = [self._targets(chunk) for chunk in step]
        weight = sum(float(self._weights[own[own != NOT_COUNTED]].sum()) for own in targets)
        taught = sum(len(chunk.blocks) for chunk in step if self._lessons[chunk.page].teacher is not None)
        loss = 0.0
        for batch in batched(step, self._settings.batch_tokens):
            try:
                with _mixed(self._encoder, self._autocast):
                    logits = self._encoder.read(batch)
                added = sum(self._loss(chunk, own, weight, taught) for chunk, own in zip(batch, logits, strict=True))
                added.backward()
            except torch.OutOfMemoryError as error:
                raise CheckpointError(
                    f"{len(batch[0].tokens) * len(batch):,} tokens are too many for the memory of the device: "
                    "train with fewer, as in encoder:PATH?batch_tokens=8192&chunk_tokens=4096"
                ) from error
            loss += added.item()
        return loss

    def _loss(self, chunk: Chunk, logits: Any, weight: float, taught: int) -> Any:
        teacher = self._lessons[chunk.page].teacher
        if teacher is not None:
            teacher = teacher[chunk.blocks].to(logits.device)
        entropy, divergence = losses(logits, self._targets(chunk), self._weights, teacher, self._settings.temperature)
        share = self._teacher_share
        return (1 - share) * entropy / max(weight, 1e-9) + share * divergence / max(taught, 1)

    def _targets(self, chunk: Chunk) -> Any:
        import torch

        targets = self._lessons[chunk.page].targets
        return torch.tensor([targets[block] for block in chunk.blocks], device=self._model.device)


def _groups(lessons: Sequence[Lesson]) -> Iterator[Sequence[Lesson]]:
    for start in range(0, len(lessons), _GROUP_PAGES):
        yield lessons[start : start + _GROUP_PAGES]


def _mixed(encoder: Encoder, autocast: bool) -> Any:
    import torch

    return torch.autocast(encoder.parts()[0].device.type, dtype=torch.bfloat16, enabled=autocast)


@contextlib.contextmanager
def _repeatable(seed: int) -> Iterator[None]:
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it, sums on a GPU come in any order
    before = torch.are_deterministic_algorithms_enabled()
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)

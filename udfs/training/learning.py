"""Training of the embedded classifier's network, in torch: examples → weights that `udfs.classifiers.network` reads."""

from __future__ import annotations

import logging
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from udfs.classifiers.embedded import choose
from udfs.classifiers.features import COLUMNS
from udfs.classifiers.texts import Ragged
from udfs.training.examples import Example
from udfs.training.trainable import Batch, Network, Sizes

logger = logging.getLogger("stencil.training")


@dataclass(frozen=True)
class Settings:
    """How the network is made and trained; kept in its record.

    mark_domains, word_domains: a token counts as known if so many registered domains have it. token_dropout: share of
    known tokens left out of a training page, so that no name is relied on. group_dropout: probability that a page is
    without its marks, its words or a group of its numbers, so that pages of another make are understood by the rest.
    pages_per_domain: most pages of one domain in an epoch. f1_weight: of the soft F1 of a page beside the cross-entropy
    of its blocks. max_blocks: pages with more are not trained on. without: features that the network does not see at
    all, to tell what they are worth: marks, words, or groups of numbers.
    """

    sizes: Sizes = field(default_factory=Sizes)
    seed: int = 0
    epochs: int = 7
    batch_pages: int = 12
    learning_rate: float = 3e-3
    weight_decay: float = 0.02
    mark_domains: int = 3
    word_domains: int = 5
    dropout: float = 0.15
    token_dropout: float = 0.5
    group_dropout: float = 0.2
    pages_per_domain: int = 10
    f1_weight: float = 0.5
    max_blocks: int = 2500
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Epoch:
    """A point of the training curve: mean loss of a page, and token F1 by kind of page on the development part."""

    loss: float
    scores: dict[str, float] = field(default_factory=dict)


def train(examples: Sequence[Example], settings: Settings) -> tuple[Network, list[Epoch]]:
    """Train on the examples of the split `train`; those of `dev` are only scored. Returns the training curve too.

    Reproducible to the byte on one machine. Raises ValueError where there is nothing to train on.
    """
    learned = [example for example in examples if example.split == "train"]
    if not learned:
        raise ValueError("no page of the split 'train' among the examples")
    torch.manual_seed(settings.seed)
    rng = np.random.default_rng(settings.seed)
    network = _network(learned, settings)
    learned, held = (_rows_of(network, part) for part in (learned, [e for e in examples if e.split == "dev"]))
    learned = [example for example in learned if len(example.target) <= settings.max_blocks]
    with _computing():
        curve = list(_epochs(network, learned, held, settings, rng))
        if held:
            _calibrate(network, held)
            curve[-1] = replace(curve[-1], scores=scores(network, held))
    return network.eval(), curve


@contextmanager
def _computing() -> Iterator[None]:
    """Have torch compute on one thread and without denormal numbers, as long as this lasts."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the matrices are small, and sums in one order give the same bytes
    torch.set_flush_denormal(True)  # the moments of rare tokens decay to numbers that are a hundred times slower
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)


def _epochs(
    network: Network,
    learned: Sequence[Example],
    held: Sequence[Example],
    settings: Settings,
    rng: np.random.Generator,
) -> Iterator[Epoch]:
    """Train; yield what each epoch came to."""
    embeddings = [network.marks.weight, network.words.weight]
    others = [weight for name, weight in network.named_parameters() if not name.startswith(("marks.", "words."))]
    optimizer = torch.optim.AdamW(
        [{"params": embeddings, "weight_decay": 0.0}, {"params": others, "weight_decay": settings.weight_decay}],
        lr=settings.learning_rate,
    )
    batches = [list(_batches(learned, settings, rng)) for _ in range(settings.epochs)]
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, settings.learning_rate, total_steps=sum(map(len, batches)) + 1, pct_start=0.15
    )
    for number, epoch in enumerate(batches, 1):
        network.train()
        losses = []
        for batch in epoch:
            pages = [_dropped(example, network, settings, rng) for example in batch]
            loss = page_loss(network, Batch.of(pages), settings.f1_weight)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        reached = Epoch(statistics.fmean(losses), scores(network, held))
        logger.info("epoch %d of %d: loss %.4f, F1 %s", number, settings.epochs, reached.loss, reached.scores)
        yield reached


def _calibrate(network: Network, held: Sequence[Example]) -> None:
    """Divide the log-odds by the temperature that makes the held-out blocks likeliest, each page alike.

    Guo et al., On Calibration of Modern Neural Networks, 2017: on pages of other domains a network is too sure.
    """
    network.eval()
    with torch.no_grad():
        batches = [Batch.of([example]) for example in held]
        odds = [network(batch) for batch in batches]
        losses = {}
        for tenths in range(10, 31):
            pages = [_entropies(values * 10 / tenths, batch) for values, batch in zip(odds, batches, strict=True)]
            losses[float(torch.cat(pages).mean())] = tenths / 10
        temperature = losses[min(losses)]
        network.output.weight /= temperature
        network.output.bias /= temperature
    logger.info("temperature %.1f", temperature)


def page_loss(network: Network, batch: Batch, f1_weight: float) -> Tensor:
    """Return the mean over pages of the cross-entropy of a page and its soft F1."""
    odds = network(batch)
    entropy = _entropies(odds, batch)
    words = batch.lengths * batch.counted
    said, truth = odds.sigmoid() * words, batch.target * words
    wanted = _by_page(truth, batch)
    f1 = 2 * _by_page(odds.sigmoid() * truth, batch) / (_by_page(said, batch) + wanted + 1)
    return (entropy + f1_weight * (1 - f1) * (wanted > 0)).mean()


def _entropies(odds: Tensor, batch: Batch) -> Tensor:
    """Return the cross-entropy of each page: the mean over its blocks, by the root of their words."""
    weight = (batch.lengths + 1).sqrt() * batch.counted
    entropy = nn.functional.binary_cross_entropy_with_logits(odds, batch.target, reduction="none")
    return _by_page(entropy * weight, batch) / _by_page(weight, batch).clamp(min=1e-6)


def _by_page(values: Tensor, batch: Batch) -> Tensor:
    """Add up the values of each page's blocks."""
    return torch.zeros(int(batch.page[-1]) + 1).index_add(0, batch.page, values)


def scores(network: Network, examples: Sequence[Example]) -> dict[str, float]:
    """Return the mean token F1 by kind of page, as the classifier chooses blocks, of examples whose tokens are rows."""
    network.eval()
    found: dict[str, list[float]] = defaultdict(list)
    with torch.no_grad():
        for example in examples:
            odds = network(Batch.of([example])).double()
            main = choose(odds.sigmoid().numpy(), example.page.chars, example.page.same)
            found[example.kind].append(example.f1(main))
    return {kind: round(statistics.fmean(values), 4) for kind, values in sorted(found.items())}


def _network(examples: Sequence[Example], settings: Settings) -> Network:
    known = {
        name: _known([(example.domain, getattr(example.page, name).ids) for example in examples], least)
        for name, least in (("marks", settings.mark_domains), ("words", settings.word_domains))
    }
    numbers = np.concatenate([example.page.numbers for example in examples])
    network = Network(known, numbers.shape[1], settings.sizes, settings.dropout)
    network.mean.copy_(torch.from_numpy(numbers.mean(0, dtype=np.float64)))
    network.scale.copy_(torch.from_numpy(numbers.std(0, dtype=np.float64) + 1e-3))
    _leave_out(network, settings.without)
    return network


def _leave_out(network: Network, names: Sequence[str]) -> None:
    """Have features come to zero, for good."""
    for name in names:
        if name in COLUMNS:
            network.scale[COLUMNS[name]] = torch.inf
        else:
            rows = getattr(network, name).weight.requires_grad_(False)
            rows.zero_()


def _known(tokens: Sequence[tuple[str, npt.NDArray[np.uint32]]], least: int) -> npt.NDArray[np.uint32]:
    """List the hashes that at least so many domains have, sorted."""
    by_domain: dict[str, list[npt.NDArray[np.uint32]]] = defaultdict(list)
    for domain, ids in tokens:
        by_domain[domain].append(ids)
    every = np.concatenate([np.unique(np.concatenate(lists)) for lists in by_domain.values()])
    hashes, counts = np.unique(every, return_counts=True)
    return hashes[counts >= least]


def _rows_of(network: Network, examples: Sequence[Example]) -> list[Example]:
    """Put rows of the embeddings in place of hashes; unknown tokens go."""

    def rows(tokens: Ragged, known: npt.NDArray[np.uint32]) -> Ragged:
        at = np.minimum(np.searchsorted(known, tokens.ids), len(known) - 1)
        return _only(Ragged(at.astype(np.uint32), tokens.offsets), known[at] == tokens.ids)

    return [
        replace(
            example,
            page=replace(
                example.page,
                marks=rows(example.page.marks, network.known["marks"]),
                words=rows(example.page.words, network.known["words"]),
            ),
        )
        for example in examples
    ]


def _only(tokens: Ragged, kept: npt.NDArray[np.bool_]) -> Ragged:
    return Ragged(tokens.ids[kept], np.concatenate([[0], np.cumsum(kept)])[tokens.offsets])


def _batches(examples: Sequence[Example], settings: Settings, rng: np.random.Generator) -> Iterator[list[Example]]:
    """Draw an epoch: some pages of every domain, in random order."""
    domains: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        domains[example.domain].append(example)
    drawn = [
        pages[at]
        for pages in domains.values()
        for at in rng.permutation(len(pages))[: settings.pages_per_domain].tolist()
    ]
    order = rng.permutation(len(drawn)).tolist()
    for start in range(0, len(order), settings.batch_pages):
        yield [drawn[at] for at in order[start : start + settings.batch_pages]]


def _dropped(example: Example, network: Network, settings: Settings, rng: np.random.Generator) -> Example:
    """Leave tokens out, each everywhere on the page, and groups of features: a number left out has its mean."""

    def some(name: str, tokens: Ragged) -> Ragged:
        share = 1.0 if rng.random() < settings.group_dropout else settings.token_dropout
        kept = rng.random(len(network.known[name])) >= share
        return _only(tokens, kept[tokens.ids])

    marks, words = some("marks", example.page.marks), some("words", example.page.words)
    numbers = example.page.numbers.copy()
    for columns in COLUMNS.values():
        if rng.random() < settings.group_dropout:
            numbers[:, columns] = network.mean[columns].numpy()
    return replace(example, page=replace(example.page, numbers=numbers, marks=marks, words=words))

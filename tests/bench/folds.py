"""The embedded classifier on every page that it may learn from, each by weights that have not seen its domain.

    ./build.sh bench folds DIR [--folds 5] [--without FEATURES ...] [--json FILE] [--reuse FILE ...]

The test part of ../shared/corpora has few pages of some types; this is the same comparison on seven times as many.
Pages of train and dev go into folds by a hash of their registered domain. For each fold weights are trained as
`stencil train` does it, with the real sites but without the fold's domains, and the fold's pages are taken through the
product as tests/bench/extractors.py does it. DIR keeps the weights of each fold; those that are there already are used.
`--without` tells what features are worth: weights are trained and used without them.
`--json`, `--reuse`: as in tests/bench/extractors.py, which makes the scores of other extractors: with `--split train`
and with `--split dev`, of the same sets; several files may be given.
Needs the extra `models`; about two CPU-minutes a fold.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

from bench.extractors import CORPORA, OURS, kept, read, run, stencil
from bench.figures import Scores, report

from templates.dom import PageError
from udfs.classifiers.embedded import WEIGHTS
from udfs.classifiers.features import GROUPS
from udfs.training import corpora, records
from udfs.training.examples import Example, domain_of, example
from udfs.training.learning import Settings, train

FILES = [CORPORA / "pages" / f"{name}.jsonl.gz" for name in ("wcxb", "fundus", "harvest")]
"""What may be trained on, beside the sites."""


def examples() -> Iterator[Example]:
    """Yield the pages that the package's weights were trained on, or chosen by."""
    paths = [*FILES, *sorted((CORPORA / "sites").glob("*/pages.jsonl.gz"))]
    splits = json.loads((CORPORA / "sites" / "splits.json").read_text("utf-8"))
    for page in corpora.survey(map(str, paths), splits).pages():
        try:
            yield example(page.row, page.site, page.split)
        except PageError:
            continue


def fold(domain: str, folds: int) -> int:
    return zlib.crc32(domain.encode()) % folds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, metavar="DIR")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", nargs="*", default=[], choices=["marks", "words", *GROUPS], metavar="FEATURES")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the scores of all pages")
    parser.add_argument("--reuse", type=Path, nargs="*", default=[], metavar="FILE")
    arguments = parser.parse_args()
    reused = kept(arguments.reuse)
    made: list[Example] = []
    scores: Scores = {"pages": {}, "extractors": {}, "scores": {}}
    for number in range(arguments.folds):
        folder = arguments.weights / str(number)
        if not (folder / WEIGHTS).exists():
            made = made or list(examples())
            seen = [one for one in made if one.kind == "sites" or fold(one.domain, arguments.folds) != number]
            network, _ = train(seen, Settings(seed=arguments.seed, without=tuple(arguments.without)))
            folder.mkdir(parents=True, exist_ok=True)
            (folder / WEIGHTS).write_bytes(records.packed(network.tensors()))
        cases = (
            case
            for case in read(FILES, 0, "all")
            if case.row["split"] != "test" and fold(domain_of(case.row), arguments.folds) == number
        )
        found = run(cases, [stencil(f"embedded:{folder}")], reused, lambda text: None)
        print(f"fold {number}: {len(found['pages'])} pages", file=sys.stderr)
        scores["pages"] |= found["pages"]
        scores["extractors"] |= found["extractors"]
        for name, pages in found["scores"].items():
            scores["scores"].setdefault(name, {}).update(pages)
    if arguments.json:
        arguments.json.write_text(json.dumps(scores, ensure_ascii=False), "utf-8")
    print("\n".join(report(scores, neutral=False, worst=10, ours=OURS)))


if __name__ == "__main__":
    main()

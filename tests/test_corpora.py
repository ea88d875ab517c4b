from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tiny import row, write

from udfs.training import corpora
from udfs.training.corpora import Corpora, survey


def splits_of(found: Corpora) -> dict[str, str]:
    return {given.row["url"].split("//")[1]: given.split for given in found.pages()}


def test_a_domain_is_in_one_part_over_all_corpora(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", [row(1, 0), row(2, 0), row(3, 0, split="dev"), row(4, 0, split="dev")])
    other = write(
        tmp_path / "other.jsonl.gz",
        [row(2, 1, split="dev"), row(3, 1, split="test"), row(5, 0), row(5, 1, url="https://blog.site5.example/1")],
    )
    found = survey([str(one), str(other)], {})
    assert splits_of(found) == {
        "www.site1.example/0": "train",
        "www.site4.example/0": "dev",
        "www.site2.example/1": "dev",
        "www.site5.example/0": "train",
        "blog.site5.example/1": "train",
    }
    assert found.left_out == Counter(domain_in_dev=1, domain_in_test=1, test=1)
    assert found.read == 8


def test_hosts_of_one_registered_domain_go_together(tmp_path: Path) -> None:
    held_out = row(1, 0, url="https://forum.example.co.uk/", split="test")
    names = ("https://shop.example.co.uk/", "https://example.org/", "https://a.github.io/", "https://b.github.io/")
    rows = [held_out, *(row(1, page, url=name) for page, name in enumerate(names))]
    rows.append(row(2, 0, url="https://a.github.io/x", split="test"))
    found = survey([str(write(tmp_path / "a.jsonl", rows))], {})
    assert sorted(splits_of(found)) == ["b.github.io/", "example.org/"]


def test_splits_of_sites_come_before_those_of_rows(tmp_path: Path) -> None:
    paths = [write(tmp_path / name / "pages.jsonl", [row(n, 0)]) for n, name in enumerate("abc")]
    found = survey([str(path) for path in paths], {"a": "dev", "b": "test"})
    assert splits_of(found) == {"www.site0.example/0": "dev", "www.site2.example/0": "train"}
    assert {given.site for given in found.pages()} == {"a", None}
    assert {file.name for file in found.files} == {"a/pages.jsonl", "b/pages.jsonl", "c/pages.jsonl"}
    assert all(file.digest == hashlib.sha256(Path(file.path).read_bytes()).hexdigest() for file in found.files)


def test_domains_without_a_split_are_drawn_and_stay_together(tmp_path: Path) -> None:
    rows = [row(site, page, split=None) for site in range(200) for page in range(2)]
    rows.append(row(7, 5, split="train"))  # says it for its domain
    path = str(write(tmp_path / "a.jsonl", rows))
    drawn = splits_of(survey([path], {}, 0.25))
    by_site: dict[str, set[str]] = {}
    for url, split in drawn.items():
        by_site.setdefault(url.split("/")[0], set()).add(split)
    assert all(len(found) == 1 for found in by_site.values())
    assert 25 < sum(found == {"dev"} for found in by_site.values()) < 75
    assert by_site["www.site7.example"] == {"train"}
    assert drawn == splits_of(survey([path], {}, 0.25))
    assert set(splits_of(survey([path], {}, 0)).values()) == {"train"}


def test_pages_are_read_once_and_only_those_with_ground_truth(tmp_path: Path) -> None:
    without = {key: value for key, value in row(1, 9).items() if not key.startswith("gold")}
    one = write(tmp_path / "one.jsonl", [row(1, 0), without, row(1, 0)])
    other = write(tmp_path / "other.jsonl", [row(1, 0), row(2, 0, gold_paths=[], gold_text="")])
    found = survey([str(one), str(other), str(one)], {})
    assert sorted(splits_of(found)) == ["www.site1.example/0", "www.site2.example/0"]
    assert found.left_out == Counter(no_truth=1, repeated=2)
    keys = [given.key for given in found.pages()]
    assert len(keys) == 2 and set(keys) == set(found.used)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not JSON"),
        ("[1]", "line 2 is no JSON object with the text `html`"),
        ('{"url": "x"}', "line 2 is no JSON object with the text `html`"),
        ('{"html": "x", "split": "valid"}', "line 2 is of the split 'valid': use train, dev, test"),
    ],
)
def test_damaged_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(row(1, 0))}\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        survey([str(path)], {})


@pytest.mark.parametrize("splits", [None, [], {"a": "training"}])
def test_splits_that_are_none(splits: Any) -> None:
    with pytest.raises(ValueError, match="folder names"):
        corpora.check_splits(splits)

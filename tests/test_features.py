from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from templates.dom import parse
from udfs.classifiers.features import LEVELS, NUMBERS, Features, features, sums
from udfs.classifiers.texts import DIGIT, START, Ragged, Texts


def of(html: str) -> Features:
    page = features(parse(html))
    assert page is not None
    return page


def column(page: Features, name: str) -> list[float]:
    return [round(value, 3) for value in page.numbers[:, NUMBERS.index(name)].tolist()]


def row(tokens: Ragged, at: int) -> set[int]:
    return set(tokens.ids[tokens.offsets[at] : tokens.offsets[at + 1]].tolist())


def words(*texts: str) -> list[set[int]]:
    tokens = Texts.of([*texts, ""]).words()
    return [row(tokens, at) for at in range(len(texts))]


TAGS = st.sampled_from(["div", "p", "ul", "li", "a", "table", "tr", "td", "main", "article", "h1", "span", "noscript"])
TREES = st.recursive(
    st.text("aB1 .。愛\n", max_size=8),
    lambda inner: st.builds(
        lambda tag, name, parts: f"<{tag} class='{name}'>{''.join(parts)}</{tag}>",
        TAGS,
        st.sampled_from(["", "nav main-menu", "postBody x1"]),
        st.lists(inner, max_size=4),
    ),
    max_leaves=30,
)


@given(TREES)
def test_every_page_has_finite_numbers_and_elements_that_hold_its_blocks(html: str) -> None:
    page = features(parse(f"<html><title>aB</title><body>{html}</body></html>"))
    if page is None:
        return
    blocks, elements = len(page.blocks), len(page.elements)
    assert page.numbers.shape == (blocks, len(NUMBERS))
    assert np.isfinite(page.numbers).all()
    assert page.around.shape == (LEVELS, blocks)
    assert [page.elements[at] for at in page.within] == [block.element for block in page.blocks]
    for tokens, rows in ((page.words, blocks), (page.marks, elements)):
        assert len(tokens.offsets) == rows + 1
        assert tokens.offsets[0] == 0
        assert tokens.offsets[-1] == len(tokens.ids)
        assert (np.diff(tokens.offsets) >= 0).all()
    number = np.arange(blocks)
    for at in (page.within, *page.around):
        assert (page.starts[at] <= number).all()
        assert (number < page.ends[at]).all()
    assert (sums(page.chars, page.starts, page.ends)[:1] == page.chars.sum()).all()


def test_a_page_without_text_has_no_features() -> None:
    assert features(parse("<html><body><img src='i.png'></body></html>")) is None


def test_words_are_the_same_in_any_case_and_with_any_digits() -> None:
    lower, upper, other = words("Posted in 2019", "POSTED IN 3207", "posted at 2019")
    assert lower == upper
    assert len(lower) == 5
    assert len(lower & other) == 2  # two words are shared, no pair is


def test_words_of_a_script_without_blanks_are_its_characters() -> None:
    long, short = words("関連記事", "記事")
    assert short < long
    assert len(long) == 4 + 3


def test_only_the_first_words_of_a_block_are_read() -> None:
    text = "one two three four five six seven eight nine ten eleven twelve"
    short, long = words(text, text + " thirteen fourteen")
    assert short == long


def test_counts() -> None:
    texts = Texts.of(["Call 555, now.", "", "ok。はい", "title"])
    assert texts.count(DIGIT).tolist() == [3, 0, 0]
    assert texts.count(START).tolist() == [3, 0, 3]
    assert texts.sentences().tolist() == [2, 0, 1]


def test_marks_are_the_words_of_classes_and_ids() -> None:
    page = of(
        "<div class='postBody'><p>a</p></div><div id='post-body9'><p>b</p></div><div class='sidebar'><p>c</p></div>"
    )
    divs = [at for at, element in enumerate(page.elements) if element.tag == "div"]
    camel, dashed, other = (row(page.marks, at) for at in divs)
    assert camel == dashed  # post, body, post-body, <div
    assert len(camel) == 4
    assert len(camel & other) == 1  # <div
    alike = column(page, "alike_0")
    assert alike[0] == alike[1] > alike[2]  # two elements of that name, one of the other


def test_the_heading_of_the_title_and_what_stands_before_it() -> None:
    page = of("<title>The flood of 1999</title><body><p>Menu here</p><h1>The flood of 1999</h1><p>It rose fast.</p>")
    assert column(page, "title_words") == [0, 1, 0]
    assert column(page, "before_h1") == [1, 0, 0]


def test_links_and_the_declared_main_part() -> None:
    page = of("<ul><li><a href='/'>Home page</a></li></ul><main><p>Plain text of it</p></main><p>Foot</p>")
    assert column(page, "link_share") == [1, 0, 0]
    assert column(page, "in_main") == [0, 1, 0]
    assert column(page, "main_part") == [0.8, 0.8, 0.8]
    assert column(page, "repeats") == [0, 0, 0]


def test_blocks_of_the_same_text() -> None:
    part = "<div><p>First paragraph</p><p>Second  paragraph</p></div>"
    page = of(f"{part}<p>Between</p>{part}<p>Second paragraph</p>")
    assert page.same.tolist() == [0, 1, 2, 0, 1, 1]
    assert column(page, "repeats") == [0.2, 0.317, 0, 0.2, 0.317, 0.317]

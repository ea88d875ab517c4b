from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from lxml.html import HtmlElement

from templates.dom import PageError, parse
from templates.labels import Labels, resolve
from udfs.blocks import SILENT_TAGS
from udfs.classifiers import from_spec
from udfs.classifiers.embedded import Embedded, network
from udfs.classifiers.embedded import label_page as label_page_by
from udfs.input.pages import Page

SENTENCE = {
    "en": "The river rose overnight, and by noon the lower town stood in water. ",
    "ja": "夜のうちに川が増水し、正午には下町が水に浸かった。人々は高台へ逃げた。",
    "ar": "ارتفع النهر ليلا، وبحلول الظهر غمرت المياه البلدة السفلى بالكامل. ",
    "el": "Το ποτάμι φούσκωσε τη νύχτα, και ως το μεσημέρι η κάτω πόλη πλημμύρισε. ",
}
MENU = "".join(f"<li><a href='/{name}'>{name}</a></li>" for name in ("Home", "News", "Sport", "Shop", "About"))
FRAME = """<html><head><title>t</title></head><body>
<div class="site-header"><a href="/"><img src="logo.png">Brand</a><ul class="menu">{menu}</ul></div>
<div class="wrap"><div class="col-a">{main}</div>
<div class="sidebar"><h3>Popular</h3><ul>{menu}</ul></div></div>
<div id="footer"><p>Copyright 2020 Brand. <a href="/terms">Terms</a></p></div></body></html>"""


def label_page(html: str) -> Labels:
    return label_page_by(html, network())


def frame(main: str) -> str:
    return FRAME.format(menu=MENU, main=main)


def page(html: str, error: str | None = None) -> Page:
    return Page(url="u", split="s", offset=0, html=html, page_id="0" * 16, truncated=None, error=error)


def main_text(html: str) -> str:
    root = parse(html)
    resolved = resolve(root, label_page(html))
    assert not resolved.dropped
    texts: list[str] = []

    def collect(element: HtmlElement, inherited: float) -> None:
        if element.tag in SILENT_TAGS:
            return
        own = resolved.elements.get(element, inherited)
        if resolved.texts.get(element, own) >= 0.5:
            texts.append(element.text or "")
        for child in element:
            collect(child, own)
            if resolved.tails.get(child, own) >= 0.5:
                texts.append(child.tail or "")

    collect(root, 0.0)
    return " ".join(" ".join(texts).split())


@pytest.mark.parametrize("language", sorted(SENTENCE))
def test_an_article_without_its_frame_in_every_script(language: str) -> None:
    text = SENTENCE[language] * 4
    html = frame(f"<h1>Heading</h1><p>{text}</p><p>{text}</p><pre>code = 1</pre><p>{text}</p>")
    found = main_text(html)
    assert found.startswith("Heading")
    assert found.count(SENTENCE[language].strip()) == 12
    assert "code = 1" in found
    for other in ("Brand", "Sport", "Popular", "Copyright"):
        assert other not in found


def test_tables_and_lists_in_the_text_are_kept() -> None:
    text = SENTENCE["en"] * 4
    table = "<table><tr><th>Year</th><th>Level</th></tr><tr><td>1999</td><td>4.2 m</td></tr></table>"
    items = "<ul><li>First the cellars filled with water.</li><li>Then the bridge was closed.</li></ul>"
    found = main_text(frame(f"<h1>Floods</h1><p>{text}</p>{table}<p>{text}</p>{items}<p>{text}</p>"))
    assert "1999" in found
    assert "Then the bridge was closed." in found


def test_a_listing_is_not_empty() -> None:
    cards = "".join(f"<div class='c'><h2><a href='/{n}'>Story number {n} of the day</a></h2></div>" for n in range(12))
    found = main_text(frame(cards))
    assert "Story number 7" in found
    assert "Copyright" not in found


def test_forum_posts_are_found() -> None:
    posts = "".join(f"<div class='post'><div class='by'>user{n}</div><p>{SENTENCE['en']}</p></div>" for n in range(6))
    assert main_text(frame(posts)).count("river rose") == 6


def test_probabilities_are_graded_and_the_paths_few() -> None:
    text = SENTENCE["en"] * 4
    labels = label_page(frame(f"<h1>Heading</h1><p>{text}</p><p>{text}</p>"))
    assert 1 <= len(labels.paths) <= 4
    assert not set(labels.probabilities) <= {0.0, 1.0}
    assert all(0 <= probability <= 1 for probability in labels.probabilities)


def test_text_between_elements_gets_its_own_path() -> None:
    text = SENTENCE["en"] * 6
    assert main_text(f"<body><div class='nav'>{MENU}</div>{text}<div id='footer'>Imprint</div></body>") == text.strip()


def test_pages_without_content() -> None:
    assert label_page("<html><body><img src='i.png'></body></html>") == Labels((), ())
    assert label_page("<html><body><script>x</script> </body></html>") == Labels((), ())


def test_bad_pages_are_values_in_their_place() -> None:
    results = Embedded().label([page(""), page(f"<p>{SENTENCE['en'] * 5}</p>"), page("x", "binary")])
    assert isinstance(results[0], PageError)
    assert isinstance(results[1], Labels)
    assert isinstance(results[2], PageError)
    assert [error.reason for error in results if isinstance(error, PageError)] == ["empty", "binary"]


def test_a_failure_on_one_page_is_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(html: str, weights: object) -> Labels:
        raise RuntimeError

    monkeypatch.setattr("udfs.classifiers.embedded.label_page", fail)
    (result,) = Embedded().label([page("<p>x</p>")])
    assert isinstance(result, PageError)
    assert result.reason == "classifier_failed"


@pytest.mark.parametrize(
    "html",
    [
        "<table>" + "<tr>" + "<td>x</td>" * 20_000 + "</table>",
        "<body>" + "<div>y" * 1_900,
        "<p>" + "word " * 200_000,
        "<body>" + "<a href='#'>z</a>text " * 10_000,
        "<body>" + "<br>line" * 10_000,
        "<body>" + "<span>" * 1_000 + "<p>x</p>" * 1_000,
        "<p " + " ".join(f"class{n}='nav'" for n in range(900)) + ">x</p>",
    ],
)
def test_odd_pages_give_labels_that_lead_somewhere(html: str) -> None:
    labels = label_page(html)
    assert not resolve(parse(html), labels).dropped


def test_labels_are_the_same_in_every_process() -> None:
    html = frame(f"<h1>Heading</h1><p>{SENTENCE['en'] * 4}</p>tail")
    code = "import sys, pickle; from udfs.classifiers.embedded import label_page, network; "
    code += "labels = label_page(sys.argv[1], network()); "
    code += "sys.stdout.buffer.write(pickle.dumps((labels.paths, labels.probabilities)))"
    out = subprocess.run([sys.executable, "-c", code, html], capture_output=True, check=True).stdout
    labels = label_page(html)
    assert out == pickle.dumps((labels.paths, labels.probabilities))


def test_the_spec_gives_it_and_torch_is_not_loaded() -> None:
    assert from_spec("embedded").name == "embedded"
    code = "import sys; from udfs.classifiers import from_spec; from_spec('embedded').label([]); "
    code += "sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_weights_of_ones_own(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no weights in .*: `stencil train` writes embedded"):
        from_spec(f"embedded:{tmp_path}")
    tensors = dict(network().tensors) | {"output.bias": np.full(1, 99, np.float32)}
    safetensors.numpy.save_file(tensors, tmp_path / "embedded.safetensors")
    classifier = from_spec(f"embedded:{tmp_path}")
    assert classifier.name == f"embedded:{tmp_path}"
    (labels,) = classifier.label([page("<p>All is main.</p><footer>This too.</footer>")])
    assert isinstance(labels, Labels)
    assert min(labels.probabilities) > 0.9


def test_weights_for_other_features_are_refused_before_any_page(tmp_path: Path) -> None:
    path = tmp_path / "embedded.safetensors"
    safetensors.numpy.save_file({"mean": np.zeros(3, np.float32)}, path)
    with pytest.raises(ValueError, match=r"can't be used: weights for 3 features a block, not \d+: train them again"):
        from_spec(f"embedded:{tmp_path}")
    path.write_bytes(b"no weights")
    with pytest.raises(ValueError, match=r"can't be used"):
        from_spec(f"embedded:{tmp_path}")

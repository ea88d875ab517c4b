"""What happens to a page: signed in the first pass, extracted in the second, evidence for a template between."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urljoin

import lxml.etree
from lxml.html import HtmlElement

from templates.application import CompiledTemplate, apply_labels, apply_template, compile_template, confidence
from templates.dom import PageError, parse, strip_textless, text_length, visible_text
from templates.induction import LabelledPage, induce
from templates.labels import Labels
from templates.template import Template
from udfs.classifiers import Classifier
from udfs.conversion.content import content_list
from udfs.conversion.markdown import markdown
from udfs.conversion.spans import Modes
from udfs.hosts import host
from udfs.input.sources import Page
from udfs.metrics import token_f1
from udfs.minhash import sketch

Row = dict[str, Any]

MIN_CONFIDENCE = 0.96
"""A template's extraction is taken from here on. See `templates.application.confidence`. On 54 real sites it lets
95% of the siblings pass, with a mean token F1 of 0.985."""

MIN_AGREEMENT = 0.5
"""A template that agrees less with the labels of pages that it has not seen is not used: it is wrong more often than
right, whatever its own confidence. A classifier that errs in a tenth of the blocks still agrees to 0.8 and more."""


@dataclass(frozen=True)
class Decision:
    """What is known of a page before it is read again: its cluster, that cluster's template (JSON), its own labels."""

    cluster_id: str | None = None
    template: str | None = None
    labels: Labels | None = None


def sign_page(page: Page) -> Row:
    """Return the row of `signatures` of a page; raises PageError where it cannot be parsed."""
    root = parse(page.html)
    strip_textless(root)
    return _address(page) | {
        "sketch": sketch(root),
        "text_chars": text_length(root),
        "truncated": page.truncated,
    }


def induce_cluster(rows: Sequence[Row]) -> Row | None:
    """Return the row of `templates` from a cluster's rows of `labels`, or None where none of them is labelled.

    The representative's row comes first of the labelled ones.
    """
    labelled = [row for row in rows if row["paths"] is not None]
    witnesses = [row["html"] for row in rows if row["paths"] is None]
    if not labelled:
        return None
    first, *others = labelled
    agreement = None
    if others:
        draft = _induced([first], [row["html"] for row in others] + witnesses)
        agreement = statistics.fmean(_agreement(draft, row) for row in others)
    template = replace(_induced(labelled, witnesses), agreement=agreement)
    return {
        "template_id": template.template_id,
        "host": first["host"],
        "cluster_id": first["cluster_id"],
        "body": template.to_json(),
        "classifier": first["classifier"],
        "page_ids": [row["page_id"] for row in labelled],
        "agreement": agreement,
    }


def _induced(labelled: Sequence[Row], witnesses: Sequence[str]) -> Template:
    pages = [LabelledPage(parse(row["html"]), _labels(row)) for row in labelled]
    return induce(labelled[0]["host"], pages, [parse(html) for html in witnesses])


def _agreement(draft: Template, row: Row) -> float:
    by_rules, by_labels = parse(row["html"]), parse(row["html"])
    apply_template(by_rules, compile_template(draft))
    apply_labels(by_labels, _labels(row))
    return token_f1(visible_text(by_rules), visible_text(by_labels))


def _labels(row: Row) -> Labels:
    return Labels(tuple(row["paths"]), tuple(row["probabilities"]))


@dataclass(frozen=True)
class Conversion:
    """What is made of main HTML: the columns of `--emit`, and how Markdown shows links and pictures."""

    columns: tuple[str, ...] = ()
    modes: Modes = field(default_factory=Modes)


def extract_page(
    page: Page, decision: Decision, fallback: Classifier | None = None, conversion: Conversion = Conversion()
) -> tuple[Row, bool]:
    """Return the row of `extractions` of a page, and whether it was explained.

    A labelled page is cut by its own labels, any other by its cluster's template if that is sure of itself; else by
    the fallback's labels, and without a fallback it is left unexplained. Raises PageError where it cannot be parsed.
    """
    root = parse(page.html)
    route: Row = _address(page) | {"cluster_id": decision.cluster_id}
    base = urljoin(page.url, _base(root))
    if decision.labels is not None:
        apply_labels(root, decision.labels)
        route |= {"extracted_by": "classifier", "coverage": 1.0}
        return route | _content(root, base, conversion), True
    if decision.template is not None:
        template, compiled = _compiled(decision.template)
        evidence = apply_template(root, compiled)
        sure = confidence(evidence, template)
        if sure >= MIN_CONFIDENCE and (template.agreement is None or template.agreement >= MIN_AGREEMENT):
            route |= {"extracted_by": "template", "template_id": template.template_id}
            route |= {"coverage": evidence.coverage, "confidence": sure}
            return route | _content(root, base, conversion), True
    if fallback is None:
        return route | {"status": "error", "error": "unexplained", "extracted_by": "none"}, False
    (labels,) = fallback.label([page])
    if isinstance(labels, PageError):
        raise labels
    root = parse(page.html)
    apply_labels(root, labels)
    return route | {"extracted_by": "fallback", "coverage": 1.0} | _content(root, base, conversion), True


def _base(root: HtmlElement) -> str:
    base = root.find("head/base")
    return "" if base is None else (base.get("href") or "").strip()


def _address(page: Page) -> Row:
    return {
        "url": page.url,
        "host": host(page.url),
        "page_id": page.page_id,
        "split": page.split,
        "offset": page.offset,
        "truncated": page.truncated,
    }


def _content(root: HtmlElement, base: str, conversion: Conversion) -> Row:
    body = root.find("body")
    text = "" if body is None else visible_text(body)
    if body is None or (not text and body.find(".//img") is None):
        return {"status": "empty", "main_html": "", "text": ""}
    body.attrib.clear()
    main_html = lxml.etree.tostring(body, encoding="unicode", method="html", with_tail=False)
    row: Row = {"status": "ok", "main_html": main_html, "text": text}
    if conversion.columns:
        items = content_list(main_html, base)
        row["content_list"] = items if "content_list" in conversion.columns else None
        row["markdown"] = markdown(items, conversion.modes) if "markdown" in conversion.columns else None
    return row


@functools.lru_cache(maxsize=1024)
def _compiled(body: str) -> tuple[Template, CompiledTemplate]:
    """Compile a template once in a process; the JSON strings of a sidecar are few and live as long as it."""
    template = Template.from_json(body)
    return template, compile_template(template)

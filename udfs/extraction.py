"""What happens to a page: signed in the first pass, extracted in the second, evidence for a template between."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import lxml.etree
from lxml.html import HtmlElement

from templates.application import CompiledTemplate, apply_labels, apply_template, compile_template, confidence
from templates.dom import PageError, parse, strip_textless, text_length, visible_text
from templates.induction import LabelledPage, induce
from templates.labels import Labels
from templates.template import Template
from udfs.classifiers import Classifier
from udfs.hosts import host
from udfs.metrics import token_f1
from udfs.minhash import sketch
from udfs.sources import Page

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


def extract_page(page: Page, decision: Decision, fallback: Classifier | None = None) -> tuple[Row, bool]:
    """Return the row of `extractions` of a page, and whether it was explained.

    A labelled page is cut by its own labels, any other by its cluster's template if that is sure of itself; else by
    the fallback's labels, and without a fallback it is left unexplained. Raises PageError where it cannot be parsed.
    """
    route: Row = {"cluster_id": decision.cluster_id}
    if decision.labels is not None:
        return _cut_by(page, decision.labels) | route | {"extracted_by": "classifier"}, True
    if decision.template is not None:
        template, compiled = _compiled(decision.template)
        root = parse(page.html)
        evidence = apply_template(root, compiled)
        sure = confidence(evidence, template)
        if sure >= MIN_CONFIDENCE and (template.agreement is None or template.agreement >= MIN_AGREEMENT):
            route |= {"extracted_by": "template", "template_id": template.template_id}
            route |= {"coverage": evidence.coverage, "confidence": sure}
            return _address(page) | _content(root) | route, True
    if fallback is None:
        return _address(page) | route | {"status": "error", "error": "unexplained", "extracted_by": "none"}, False
    (labels,) = fallback.label([page])
    if isinstance(labels, PageError):
        raise labels
    return _cut_by(page, labels) | route | {"extracted_by": "fallback"}, True


def _cut_by(page: Page, labels: Labels) -> Row:
    root = parse(page.html)
    apply_labels(root, labels)
    return _address(page) | _content(root) | {"coverage": 1.0}


def _address(page: Page) -> Row:
    return {
        "url": page.url,
        "host": host(page.url),
        "page_id": page.page_id,
        "split": page.split,
        "offset": page.offset,
        "truncated": page.truncated,
    }


def _content(root: HtmlElement) -> Row:
    body = root.find("body")
    if body is None:
        return {"status": "empty", "main_html": "", "text": ""}
    body.attrib.clear()
    text = visible_text(body)
    if not text and body.find(".//img") is None:
        return {"status": "empty", "main_html": "", "text": ""}
    main_html = lxml.etree.tostring(body, encoding="unicode", method="html", with_tail=False)
    return {"status": "ok", "main_html": main_html, "text": text}


@functools.lru_cache(maxsize=1024)
def _compiled(body: str) -> tuple[Template, CompiledTemplate]:
    """Compile a template once in a process; the JSON strings of a sidecar are few and live as long as it."""
    template = Template.from_json(body)
    return template, compile_template(template)

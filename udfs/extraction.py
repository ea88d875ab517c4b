"""What happens to a page: signed in the first pass, extracted in the second, evidence for a template between."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lxml.etree
from lxml.html import HtmlElement

from templates.application import CompiledTemplate, apply_labels, apply_template, compile_template, confidence
from templates.dom import PageError, parse, strip_textless, visible_text
from templates.induction import LabelledPage, induce
from templates.labels import Labels
from templates.template import Template
from udfs.classifiers import Classifier
from udfs.hosts import host
from udfs.minhash import sketch
from udfs.sources import Page

Row = dict[str, Any]

MIN_CONFIDENCE = 0.95
"""A template's extraction is taken from here on. See `templates.application.confidence`."""

_text_length = lxml.etree.XPath("string-length(normalize-space(.))")


@dataclass(frozen=True)
class Decision:
    """What is known of a page before it is read again: its clusters, nearest first, and its own labels if it has any."""

    cluster_ids: tuple[str, ...] = ()
    labels: Labels | None = None


def sign_page(page: Page) -> Row:
    """Return the row of `signatures` of a page; raises PageError where it cannot be parsed."""
    root = parse(page.html)
    strip_textless(root)
    return _address(page) | {"sketch": sketch(root), "text_chars": int(_text_length(root)), "truncated": page.truncated}


def induce_cluster(rows: Sequence[Row]) -> Row | None:
    """Return the row of `templates` from a cluster's rows of `labels`, or None where none of them is labelled."""
    labelled, witnesses = [], []
    for row in rows:
        if row["paths"] is None:
            witnesses.append(parse(row["html"]))
        else:
            labels = Labels(tuple(row["paths"]), tuple(row["probabilities"]))
            labelled.append((row, LabelledPage(parse(row["html"]), labels)))
    if not labelled:
        return None
    first = labelled[0][0]
    template = induce(first["host"], [page for _, page in labelled], witnesses)
    return {
        "template_id": template.template_id,
        "host": first["host"],
        "cluster_id": first["cluster_id"],
        "body": template.to_json(),
        "classifier": first["classifier"],
        "page_ids": [row["page_id"] for row, _ in labelled],
    }


def extract_page(
    page: Page, decision: Decision, templates: Mapping[str, str], fallback: Classifier | None = None
) -> tuple[Row, bool]:
    """Return the row of `extractions` of a page, and whether it was explained.

    templates: JSON by cluster_id. A labelled page is cut by its own labels. Any other is cut by the first of its
    clusters' templates that is confident; if none is, by the fallback's labels, and without a fallback it is left
    unexplained. Raises PageError where the page cannot be parsed.
    """
    if decision.labels is not None:
        found = {"extracted_by": "classifier", "cluster_id": next(iter(decision.cluster_ids), None)}
        return _cut_by(page, decision.labels) | found, True
    for cluster_id in decision.cluster_ids:
        if cluster_id in templates:
            template, compiled = _compiled(templates[cluster_id])
            root = parse(page.html)
            evidence = apply_template(root, compiled)
            sure = confidence(evidence, template)
            if sure >= MIN_CONFIDENCE:
                found = {"extracted_by": "template", "template_id": template.template_id, "cluster_id": cluster_id}
                found |= {"coverage": evidence.coverage, "confidence": sure}
                return _address(page) | _content(root) | found, True
    if fallback is None:
        return _address(page) | {"status": "error", "error": "unexplained", "extracted_by": "none"}, False
    (labels,) = fallback.label([page])
    if isinstance(labels, PageError):
        raise labels
    return _cut_by(page, labels) | {"extracted_by": "fallback"}, True


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

"""template: what a store knows of a host, for a person to read, compare, correct and take away."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator

from spark_jobs.errors import RequestError
from spark_jobs.options import TemplateOptions
from spark_jobs.parts import Row
from templates import storage
from templates.store import Store
from templates.template import SEPARATOR, Template


def run(options: TemplateOptions) -> list[str]:
    """Do what is asked and return lines to print; raises RequestError where the store has no such template."""
    store = Store(options.store)
    if options.action == "compact":
        return [f"{store.compact():,} rows in one file"]
    if options.host is None:
        raise RequestError(f"template {options.action} needs a HOST")
    found = list(store.read([options.host]))
    if options.template is not None:
        found = [row for row in found if row["template_id"] == options.template]
    if not found:
        which = f" {options.template}" if options.template else ""
        raise RequestError(
            f"{store.path} has no template{which} of {options.host!r}; hosts are full names in lower case"
        )
    if options.action == "show":
        return _show(store, found, options.json)
    if options.action == "forget":
        for row in found:
            store.replace(row, None, f"forgotten-{row['template_id']}")
        return [f"forgot {row['template_id']}" for row in found]
    (row,) = _only(found)
    edited = _read(options.file, row)
    if options.action == "diff":
        return _diff(row, edited)
    if edited.template_id == row["template_id"]:
        return ["nothing has changed"]
    store.replace(row, edited.to_json(), edited.template_id)
    return [*_diff(row, edited), f"{edited.template_id} takes the place of {row['template_id']} from the next run on"]


def _show(store: Store, found: list[Row], as_json: bool) -> list[str]:
    if as_json:
        return [row["body"] for row in found]
    uses = store.uses()
    return [line for row in found for line in describe(row, *uses.get(row["template_id"], (0, 0)))]


def describe(row: Row, runs: int = 0, pages: int = 0) -> Iterator[str]:
    """Describe one template: where it comes from, then a line for each rule, deeper rules indented."""
    template = Template.from_json(row["body"])
    labelled = ", ".join(row["page_ids"])
    yield f"template {row['template_id']} of {row['host']}"
    if row["replaces"]:
        yield f"  edited by a person, in place of {row['replaces']}"
    yield f"  induced from {template.labelled} labelled page(s) by {row['classifier']}: {labelled}"
    if template.agreement is not None:
        yield f"  agrees to {template.agreement:.3f} with the labels of pages that it had not seen (token F1)"
    yield f"  has extracted {pages:,} pages in {runs:,} later runs"
    yield f"  usually keeps {template.usual_main:,} characters; knows {len(template.frame)} lines of boilerplate"
    yield "  rules: label, labelled pages that have the path, step"
    for rule in template.rules:
        indent = "  " * rule.path.count(SEPARATOR)
        step = rule.path.rpartition(SEPARATOR)[2]
        yield f"  {rule.label:5} {rule.support:3}  {indent}{step}"
    yield "  main content, as XPaths:"
    yield from (f"    {rule.xpath}" for rule in template.rules if rule.label == "main")
    yield ""


def _only(found: list[Row]) -> list[Row]:
    if len(found) > 1:
        ids = ", ".join(row["template_id"] for row in found)
        raise RequestError(f"the host has {len(found)} templates: choose one with --template ({ids})")
    return found


def _read(path: str | None, row: Row) -> Template:
    if path is None:
        raise RequestError(
            "give the edited template with --file (write it with `template show HOST --json`, then edit)"
        )
    try:
        template = Template.from_json(storage.read_bytes(path).decode())
    except (OSError, ValueError) as error:
        raise RequestError(f"{path}: {error}") from error
    if template.host != row["host"]:
        raise RequestError(f"{path} is a template of {template.host!r}, not of {row['host']!r}")
    return template


def _diff(row: Row, edited: Template) -> list[str]:
    before, after = (_lines(json.loads(body)) for body in (row["body"], edited.to_json()))
    return list(difflib.unified_diff(before, after, row["template_id"], edited.template_id, lineterm="", n=1))


def _lines(body: dict[str, list[list[object]]]) -> list[str]:
    return [f"{label:5} {path}" for path, label, _ in body["rules"]]

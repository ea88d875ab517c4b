"""template: show what a store knows of a host, so that a person understands it."""

from __future__ import annotations

from collections.abc import Iterator

from spark_jobs.errors import RequestError
from spark_jobs.options import TemplateOptions
from spark_jobs.parts import Row
from templates.store import Store
from templates.template import SEPARATOR, Template


def show(options: TemplateOptions) -> list[str]:
    """Print the templates of a host; raises RequestError where the store has none."""
    found = sorted(Store(options.store).read([options.host]), key=lambda row: row["template_id"])
    if not found:
        raise RequestError(
            f"{options.store} has no template of {options.host!r}; hosts are full names in lower case"
        )
    if options.json:
        return [row["body"] for row in found]
    return [line for row in found for line in describe(row)]


def describe(row: Row) -> Iterator[str]:
    """Describe one template: where it comes from, then a line for each rule, deeper rules indented."""
    template = Template.from_json(row["body"])
    yield f"template {row['template_id']} of {row['host']}"
    pages = ", ".join(row["page_ids"])
    yield f"  induced from {template.labelled} labelled page(s) by {row['classifier']}: {pages}"
    yield f"  knows {len(template.frame)} lines of boilerplate"
    yield "  rules: label, labelled pages that have the path, step"
    for rule in template.rules:
        indent = "  " * rule.path.count(SEPARATOR)
        step = rule.path.rpartition(SEPARATOR)[2]
        yield f"  {rule.label:5} {rule.support:3}  {indent}{step}"
    yield "  main content, as XPaths:"
    yield from (f"    {rule.xpath}" for rule in template.rules if rule.label == "main")
    yield ""

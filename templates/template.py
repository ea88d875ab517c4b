"""A template: ordered rules, each a path of cleaned steps with the label of what lies there."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lxml.html import HtmlElement

MAIN, OTHER = "main", "other"
SEPARATOR = " > "
UNNAMED = "?"
"""Stands for class and id tokens that say nothing about the template: per-page, hashed or unknown ones."""

_NUMBER = re.compile(r"[0-9]")
_LONG_NUMBER = re.compile(r"[0-9]{3}")
_HASH_CHANGE = re.compile(r"[a-zA-Z][0-9]|[0-9][a-zA-Z]")
_PARTS = re.compile(r"[-_:]+")


@dataclass(frozen=True)
class Rule:
    """The label of everything below a path that no deeper rule decides.

    path: steps from `html`, joined by ` > `; a step is a tag, then `#id` and class tokens, sorted; `post-*` stands
    for tokens with that beginning, `?` for tokens that say nothing.
    label: `main` or `other`. support: labelled pages on which an element of this path was seen.
    """

    path: str
    label: str
    support: int

    @property
    def xpath(self) -> str:
        """Return the XPath that selects the rule's elements, to read and to try in any tool."""
        return "".join(_step_xpath(step) for step in self.path.split(SEPARATOR))


@dataclass(frozen=True)
class Template:
    """What is main on the pages of one layout of a host.

    rules: every rule comes after that of its nearest ancestor. frame: CRC-32 of text lines that stood in `other`
    regions, by which known boilerplate is told from new text. usual_main, usual_dropped: characters that it keeps
    of the pages seen at induction, and that it drops though they are not of the frame (medians). labelled: number of
    labelled pages. agreement: mean token F1 between what the first labelled page's rules and what their own labels
    keep of the other labelled pages; None where there is no other.
    """

    host: str
    rules: tuple[Rule, ...]
    frame: frozenset[int]
    usual_main: int
    usual_dropped: int
    labelled: int
    agreement: float | None = None

    @functools.cached_property
    def template_id(self) -> str:
        """Digest of the content: equal templates have equal ids, in any run."""
        return hashlib.blake2b(self.to_json().encode(), digest_size=8).hexdigest()

    def to_json(self) -> str:
        """Return the template as JSON, with stable order and no spaces."""
        body = {
            "host": self.host,
            "labelled": self.labelled,
            "agreement": self.agreement,
            "usual": [self.usual_main, self.usual_dropped],
            "rules": [[rule.path, rule.label, rule.support] for rule in self.rules],
            "frame": sorted(self.frame),
        }
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Template:
        """Read what `to_json` wrote. Raises ValueError where it is not a template."""
        try:
            body: dict[str, Any] = json.loads(text)
            rules = tuple(Rule(str(path), str(label), int(support)) for path, label, support in body["rules"])
            usual_main, usual_dropped = map(int, body["usual"])
            frame = frozenset(map(int, body["frame"]))
            agreement = None if body["agreement"] is None else float(body["agreement"])
            labelled = int(body["labelled"])
            template = cls(str(body["host"]), rules, frame, usual_main, usual_dropped, labelled, agreement)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a template: {error!r}") from error
        for rule in rules:
            if rule.label not in (MAIN, OTHER):
                raise ValueError(f"a rule's label is {MAIN!r} or {OTHER!r}, not {rule.label!r}")
        return template


def forms(token: str) -> list[str]:
    """List what a class or id token may be called, most telling first: itself, then its beginnings, as `post-*`.

    A token that looks like a page's own (a number of three and more digits, a hash, a long slug) is not called
    itself. Small numbers stay, because `col-8` and `col-4`, `h2` and `h3` tell regions apart.
    """
    starts = [token[: cut.end()] + "*" for cut in _PARTS.finditer(token) if 2 < cut.end() < len(token)]
    return [*([] if _is_own(token) else [token]), *reversed(starts)]


def _is_own(token: str) -> bool:
    if len(token) > 40 or token in (">", UNNAMED):
        return True
    if not _NUMBER.search(token):
        return False
    return bool(_LONG_NUMBER.search(token)) or any(
        len(part) >= 5 and len(_HASH_CHANGE.findall(part)) >= 2 for part in _PARTS.split(token)
    )


def tokens(element: HtmlElement) -> set[str]:
    """Collect all forms of the id (as `#id`) and of the class tokens of an element."""
    return {form for options in _options(element.get("class"), element.get("id")) for form in options}


def _options(classes: str | None, identifier: str | None) -> list[list[str]]:
    options = [forms(token) for token in classes.split()] if classes else []
    if identifier and (identifier := identifier.strip()) and len(identifier.split()) == 1:
        options.append(["#" + form for form in forms(identifier)])
    return options


Stepper = Callable[[HtmlElement], str]


def stepper(vocabulary: frozenset[str]) -> Stepper:
    """Return a function that gives an element's step: its tag, and of each token the first form in the vocabulary.

    An element that has tokens, but none of the vocabulary, gets `?`, so that it differs from one without any.
    html and body give their tag alone: their attributes are a page's own.
    """

    @functools.lru_cache(maxsize=4096)
    def step(tag: str, classes: str | None, identifier: str | None) -> str:
        if tag in ("html", "body"):
            return tag
        options = _options(classes, identifier)
        names = {next((form for form in forms if form in vocabulary), "") for forms in options} - {""}
        if not names:
            return f"{tag} {UNNAMED}" if options else tag
        return f"{tag} {' '.join(sorted(names))}"

    def of(element: HtmlElement) -> str:
        get = element.get
        return step(element.tag, get("class"), get("id"))

    return of


def _step_xpath(step: str) -> str:
    tag, *names = step.split(" ")
    return f"/{tag}{''.join(map(_token_xpath, names))}"


def _token_xpath(token: str) -> str:
    if token == UNNAMED:
        return "[@class or @id]"
    if token.startswith("#"):
        name = token[1:]
        return f"[starts-with(@id, {_quoted(name[:-1])})]" if name.endswith("*") else f"[@id={_quoted(name)}]"
    if token.endswith("*"):
        return f"[contains(@class, {_quoted(token[:-1])})]"
    return f'[contains(concat(" ", normalize-space(@class), " "), {_quoted(f" {token} ")})]'


def _quoted(text: str) -> str:
    return f'"{text}"' if '"' not in text else f"'{text}'"

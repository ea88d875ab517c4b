"""Prompts: what the published decoders were trained to be asked, read where it is installed and checked by its hash."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
from pathlib import Path
from types import MappingProxyType

SHA256 = MappingProxyType({
    "short_compact": "7d114fd27fc107bf980f353065f5a5fec20bb2dddc1ff1c74db4b901f6957d24",
    "compact": "bdd321f2cb0834ffc4a72ed41a285698c2721d0fa664da215e176b0b9ed551de",
})  # fmt: skip
"""Of each prompt's text before the simplified HTML, which ends it."""

_PACKAGE, _MODULE = "mineru-html", "mineru_html/process/build_prompt.py"
_FUNCTIONS = {"short_compact": "get_full_prompt_short_compact", "compact": "get_full_prompt_long_compact"}


def read(name_or_path: str) -> str:
    """Read a prompt: a published one by its name, from the installed package, or the text in a file.

    Raises ValueError if it isn't there, or is not, to the byte, a text that models were trained with.
    """
    if name_or_path in _FUNCTIONS:
        text = _from_package(name_or_path)
    else:
        try:
            text = Path(name_or_path).read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"no prompt {name_or_path!r}: use {' or '.join(SHA256)}, or a file ({error})") from error
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest not in SHA256.values():
        raise ValueError(f"the prompt {name_or_path!r} is not one that models were trained with (sha256 {digest})")
    return text


def _from_package(name: str) -> str:
    try:
        source = importlib.metadata.distribution(_PACKAGE).locate_file(_MODULE)
        tree = ast.parse(Path(str(source)).read_text(encoding="utf-8"))
    except (importlib.metadata.PackageNotFoundError, OSError) as error:
        raise ValueError(
            f"the prompt {name!r} is in the package {_PACKAGE}, which is not installed: pip install --no-deps "
            f"'{_PACKAGE}==1.1.2', or name a file with prompt=PATH"
        ) from error
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == _FUNCTIONS[name]:
            for value in ast.walk(node):
                if isinstance(value, ast.JoinedStr) and len(value.values) > 1:
                    return _text(value)
    raise ValueError(f"{source} holds no prompt {name!r}: version 1.1.2 does")


def _text(template: ast.JoinedStr) -> str:
    """Return an f-string's text up to the page, with the name of the item attribute filled in."""
    pieces: list[str] = []
    for part in template.values:
        if isinstance(part, ast.Constant):
            pieces.append(str(part.value))
        elif isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
            if part.value.id == "html_str":
                break
            pieces.append("_item_id")
    return "".join(pieces)

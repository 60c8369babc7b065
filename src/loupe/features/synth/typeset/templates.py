"""Page designs of the user's own, in typst: they are given made-up data, and say what stands on the page.

The typesetter reads the template and nothing else, a file alone or the folder of a `main.typ`: docs/synth.md#templates.
A template is a program of whoever wrote it: it runs in a process with bounds of memory and time, and without network.
PDFium reads out of the typeset page what the truth says: an independent check, white space aside.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import secrets
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from loupe.data.bounded import ask
from loupe.errors import UsageError
from loupe.features.synth.dice import Dice
from loupe.features.synth.page import Field, Page, Truth
from loupe.features.synth.texts import Prose, language, text_of
from loupe.features.synth.typeset.typesetter import TypesetError, compiled, first_line, font_folders, no_packages
from loupe.files.folder import write_file
from loupe.files.foreign import is_inside, read_data
from loupe.files.scratch import named_folder, scratch_folder, sweep
from loupe.typed import convert

#: What a font draws as one sign and PDFium reads in drawing order: lam with alef, in Arabic.
LIGATURES = {"لا": "ال", "لأ": "أل", "لإ": "إل", "لآ": "آل"}


def text_layer(pdf: bytes) -> list[str]:
    """The text of each page of a PDF, as PDFium reads it."""
    from loupe.data.page_drawing import open_pdf

    with scratch_folder("loupe-synth-") as folder:
        path = folder / "page.pdf"
        write_file(path, pdf)
        with open_pdf(path) as document:
            return [page.get_textpage().get_text_range() for page in document]


def difference(pdf: bytes, truth: Truth) -> str:
    """The difference of the text layer of a page to its truth, in one line; "" if there is none.

    Compared in order, but where a page is drawn in another order than it is read: there as a bag of characters, and of
    formulas as a bag of letters and digits.
    """
    layers = text_layer(pdf)
    if len(layers) != 1:
        return f"{len(layers)} pages instead of one"
    wanted = truth.text if truth.drawn is None else truth.drawn
    found, right = (_plain(text, truth.layer) for text in (layers[0], wanted))
    if found == right:
        return ""
    place = next((i for i, (a, b) in enumerate(zip(found, right, strict=False)) if a != b), min(len(found), len(right)))
    near = slice(max(0, place - 15), place + 25)
    return f"the page has {found[near]!r}, the truth {right[near]!r}"


def _plain(text: str, layer: str) -> str:
    for written, drawn in LIGATURES.items():
        text = text.replace(written, drawn)
    if layer == "letters":
        text = unicodedata.normalize("NFKC", text)
        return "".join(sorted(letter for letter in text if letter.isalnum()))
    text = "".join(unicodedata.normalize("NFC", text).split())
    return "".join(sorted(text)) if layer == "bag" else text


MAIN = "main.typ"
_MOST_BYTES = 1 << 20
_PACKAGE = re.compile(rb'"@[A-Za-z]')
_COUNT = 24
#: More of a value of the template is not shown.
_SHOWN = 60
_PREFIX = "loupe-template-"
_HELP = "docs/synth.md#templates"


class Said(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The `#metadata((…)) <truth>` of a template: values that must be exact, and its text."""

    fields: dict[str, str] = {}
    text: str = ""


def checked_template(path: Path) -> Path:
    """The template, a file or a folder with a `main.typ`. Raises UsageError if it is none, or asks for a package."""
    main = path / MAIN if path.is_dir() else path
    if not main.is_file():
        raise UsageError(f"{path}: no such template", hint=f"use --template FILE.typ, or a folder with {MAIN}")
    for file in sorted(path.rglob("*")) if path.is_dir() else []:
        if not is_inside(file, path):
            raise UsageError(
                f"{file}: a link that leads out of the template", hint="copy what it needs into the folder"
            )
    for file in sorted(path.rglob("*.typ")) if path.is_dir() else [path]:
        for number, line in enumerate(read_data(file, limit=_MOST_BYTES).split(b"\n"), 1):
            if _PACKAGE.search(line):
                raise UsageError(f"{file}:{number}: packages are not loaded", hint="copy what it needs into the folder")
    return path


def template_digest(path: Path) -> str:
    """Identifies a template by the bytes of its files."""
    digest = hashlib.sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]:
        name = str(file.relative_to(path)) if path.is_dir() else ""
        digest.update(f"{name}\0{hashlib.sha256(read_data(file)).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def made_up_data(code: str, dice: Dice, number: int) -> dict[str, Any]:
    """A template's data, `json(bytes(sys.inputs.data))`: names, sentences, titles, numbers and dates."""
    prose, one = Prose.of(code), language(code)
    dates = [f"{dice.between(1951, 1999)}-{dice.between(1, 12):02}-{dice.between(1, 28):02}" for _ in range(_COUNT)]
    return {
        "number": number,
        "language": code,
        "names": dice.shuffled(one.names)[:_COUNT],
        "sentences": [text_of(prose.sentence(dice)) for _ in range(_COUNT)],
        "titles": [prose.words(dice, 3) for _ in range(_COUNT)],
        "cents": [dice.between(100, 99_999) for _ in range(_COUNT)],
        "counts": [dice.between(1, 12) for _ in range(_COUNT)],
        "digits": [dice.digits(8) for _ in range(_COUNT)],
        "dates": dates,
    }


def typeset_template(path: str, data: dict[str, Any]) -> bytes:
    """The PDF of a page of a template. Raises UsageError or PageError, with the first line of what is wrong."""
    return ask(pdf_here, path, data)


def said_of(path: str, data: dict[str, Any]) -> Said:
    """The truth that the template names for this page; its text is that of the text layer if it names none.

    Raises UsageError or PageError if it says it in no form that is known, or is no single page.
    """
    fields, text = ask(said_here, path, data)
    return Said(fields, text)


def pdf_here(path: str, data: dict[str, Any]) -> bytes:
    """`typeset_template` in this process, which has its bounds."""
    _leave_network()
    with _places(path) as (main, root):
        return compiled(_compiler(main, root, template_digest(Path(path))), _inputs(data), path)


def said_here(path: str, data: dict[str, Any]) -> tuple[dict[str, str], str]:
    """`said_of` in this process, which has its bounds. First the page: its errors say where they are."""
    layers = text_layer(pdf_here(path, data))
    if len(layers) != 1:
        raise TypesetError(f"{path}: {len(layers):,} pages; a template is one page", hint=_HELP)
    said = _said(path, data)
    if empty := next((name for name, value in said.fields.items() if not value.strip()), None):
        raise TypesetError(f"{path}: <truth>: the field {empty[:_SHOWN]!r} has no value", hint=_HELP)
    page = _packed(layers[0])
    if lacking := next((name for name, value in said.fields.items() if _packed(value) not in page), None):
        raise TypesetError(
            f"{path}: <truth>: the field {lacking[:_SHOWN]!r} is not on the page: {said.fields[lacking][:_SHOWN]!r}",
            hint="print it as it is, with hyphenate: false and ligatures: false",
        )
    return said.fields, said.text or layers[0].replace("\r", "")


def _packed(text: str) -> str:
    """Without white space, and signs of one look as one."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def _leave_network() -> None:
    """Let packages be asked for at an address where nobody can be: the typesetter has no switch for that."""
    for name in ("no_proxy", "NO_PROXY"):
        os.environ.pop(name, None)
    os.environ.update(dict.fromkeys(("https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:0"))


def _said(path: str, data: dict[str, Any]) -> Said:
    import typst

    try:
        with _places(path) as (main, root):
            found = typst.query(
                str(main), "<truth>", field="value", root=str(root), sys_inputs=_inputs(data), **_surroundings()
            )
    except RuntimeError as error:
        raise TypesetError(f"{path}: {first_line(str(error))}", hint=_HELP) from None
    values = json.loads(found) if isinstance(found, str | bytes) else found
    if not values:
        return Said()
    try:
        return convert(values[0], Said)
    except msgspec.ValidationError as error:
        raise TypesetError(f"{path}: <truth>: {error}", hint='#metadata((fields: (total: "1.00"))) <truth>') from None


def _inputs(data: dict[str, Any]) -> dict[str, str]:
    return {"data": json.dumps(data, ensure_ascii=False, sort_keys=True)}


@functools.lru_cache(maxsize=8)
def _compiler(main: Path, root: Path, digest: str) -> Any:
    """`digest` is that of the template: one that was edited meanwhile is another."""
    import typst

    return typst.Compiler(str(main), root=str(root), **_surroundings())


def _surroundings() -> dict[str, Any]:
    return {"font_paths": font_folders(), "package_path": no_packages(), "package_cache_path": no_packages()}


@contextmanager
def _places(path: str) -> Iterator[tuple[Path, Path]]:
    """The file to begin with, and the folder that the typesetter may read: for a file alone one with nothing else.

    That folder is there only while it is used: a process with bounds may be ended at any time, and cleans up nothing.
    What such a process leaves is taken away by the next one.
    """
    whole = Path(path).absolute()
    if whole.is_dir():
        yield whole / MAIN, whole
        return
    alone = _nowhere(path)
    with named_folder(alone):
        write_file(alone / whole.name, read_data(whole, limit=_MOST_BYTES))
        yield alone / whole.name, alone


@functools.lru_cache(maxsize=8)
def _nowhere(path: str) -> Path:
    """A name that nobody can know, the same for each page of a template: its compiler is kept."""
    sweep(_PREFIX)
    return Path(tempfile.gettempdir()) / f"{_PREFIX}{secrets.token_hex(8)}"


def template_page(path: Path, seed: int, number: int, code: str) -> Page:
    """Page `number` of a template; its text is what the template says, else that of its text layer."""
    data = made_up_data(code, Dice(seed, "template", number), number)
    said = said_of(str(path), data)
    recipe = {"template": str(path), "data": data, "digest": template_digest(path)}
    return Page(
        track="template",
        base=f"template-{number:04}",
        rung="page",
        rank=0,
        language=code,
        layout={},
        truth=Truth(
            text=said.text,
            fields=tuple(Field(name=name, value=value) for name, value in said.fields.items()),
            glue=language(code).glue,
            recipe=recipe,
        ),
    )

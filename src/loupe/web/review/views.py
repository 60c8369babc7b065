"""Views of a review for a browser: the page, the list, one entry and previews, all rendered here and escaped.

Markdown and tables become HTML in a worker process: hostile text costs one preview.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from loupe.data.hub.katex import has_fonts, read_katex
from loupe.errors import EngineError, MissingToolError, PageError
from loupe.report import markup
from loupe.results.control_characters import PAGE_LISTS
from loupe.typed import encode_json, json_decoder
from loupe.types import Request
from loupe.web.page_pictures import SIZES
from loupe.web.responses import SHARED_FILES, static_files
from loupe.web.review.entries import Entry, Field
from loupe.web.review.session import Documents, Placed, Review
from loupe.workers.child import Loaded
from loupe.workers.pool import WorkerPool, worker_pool

_SECONDS = 8.0


class Preview(msgspec.Struct):
    """Safe HTML, and what a reader must know about it."""

    html: str = ""
    notice: str = ""


def load() -> Loaded:
    """The worker's side."""
    return Loaded(read=_read)


def _read(request: Request) -> str:
    from loupe.report.markup import render_markdown

    rendered = render_markdown(request.text)
    return encode_json(Preview(rendered.html, rendered.notice)).decode()


class Previews:
    """Renders texts. Use `previews`, which opens it."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    async def render(self, text: str) -> Preview:
        """The text as HTML, or why there is none."""
        try:
            output = await self._pool.ask(Request(id="preview", text=text), timeout=_SECONDS)
        except EngineError as error:
            return Preview(notice=f"No preview: {error.message}")
        return json_decoder(Preview).decode(output.text)


@asynccontextmanager
async def previews() -> AsyncIterator[Previews]:
    """One worker, none before the first preview."""
    async with worker_pool("loupe.web.review.views:load", {}, workers=1, lazy=True) as pool:
        yield Previews(pool)


JsonObject: TypeAlias = dict[str, Any]

_HERE = Path(__file__).parent
#: Everything that is served as it is; the look is the report's.
STATIC_FILES = SHARED_FILES | static_files(_HERE / "static")
for _name in ("report.css", "diff.js", "visible.js"):
    STATIC_FILES[_name] = Path(markup.__file__).parent / "static" / _name
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Group:
    """The entries of one page or section, together in the list."""

    document: str
    page: int
    section: str
    rows: list[Placed]

    @property
    def name(self) -> str:
        """The section, or the name of the document without its folder."""
        return self.section or PurePosixPath(self.document).name or self.document

    @property
    def reviewed(self) -> int:
        """The number of entries that have been decided."""
        return sum(row.entry.status != "unreviewed" for row in self.rows)


class Views:
    """Renders a review."""

    def __init__(self, review: Review, documents: Documents) -> None:
        self._review = review
        self._documents = documents
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=select_autoescape(default=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=whole,
        )
        truth = review.truth
        self._templates.globals |= {"shown": shown, "noun": truth.noun, "picture_of": self._picture}
        self._templates.globals |= {"words": truth.words, "said": truth.said, "by_id": truth.by_id, "ident": ident}
        self._templates.globals["in_lines"] = truth.in_lines
        self._templates.globals |= {**PAGE_LISTS, "hint": truth.hint}

    def _picture(self, entry: Entry) -> int | None:
        """The number of the page beside an entry; a broken line has none."""
        return self._documents.number(entry.document, entry.page) if _has_page(entry) else None

    def page(self, number: int | None) -> str:
        """The whole page, open at the line, else at the first that is to be reviewed."""
        rows = self._review.entries()
        chosen = next((row for row in rows if row.number == number), None)
        unreviewed = (row for row in rows if row.entry.status == "unreviewed" and not row.entry.broken)
        chosen = chosen or next(unreviewed, rows[0] if rows else None)
        return self._render(
            "page.html",
            name=self._review.name,
            path=str(self._review.path),
            folder=str(self._documents.folder),
            title=self._review.truth.title,
            groups=grouped(rows),
            documents=_counted(row.entry.document for row in rows if row.entry.document),
            kinds=_counted(row.entry.kind for row in rows if row.entry.kind),
            chosen=chosen.number if chosen else 0,
            detail=(detail := self._detail(chosen) if chosen else None),
            entry={name: value for name, value in (detail or {}).items() if name not in ("head", "form")},
            state=self.state(rows),
            sizes=json.dumps(SIZES),
            math=_math_note(),
            saves_typing=self._review.truth.saves_typing,
            remark=whole(self._review.remark),
            next_command=whole(self._review.next_command()),
            has_drafts=any(row.entry.drafts for row in rows),
            has_tables=any(field.control == "table" for row in rows for field in row.entry.fields),
        )

    def whole_list(self) -> str:
        """The list alone."""
        return self._render("list.html", groups=grouped(self._review.entries()))

    def state(self, rows: list[Placed] | None = None) -> JsonObject:
        """The state of the review, for the head of the page."""
        counts = Counter("broken" if row.entry.broken else row.entry.status for row in rows or self._review.entries())
        names = ("unreviewed", "verified", "rejected", "broken")
        return {
            "revision": self._review.revision,
            "counts": {name: counts[name] for name in names},
            "locked": self._review.locked,
            "undo": whole(self._review.can_undo()),
        }

    def placed(self, number: int, ident: str = "") -> Placed | None:
        """The entry at this line; with an id, the one of that id wherever it stands now."""
        rows = self._review.entries()
        found = next((row for row in rows if row.number == number), None)
        if ident and (found is None or found.entry.id != ident):
            return next((row for row in rows if row.entry.id == ident), None)
        return found

    def entry(self, number: int, ident: str = "") -> JsonObject | None:
        """One entry, rendered, with what the page has to know of it."""
        placed = self.placed(number, ident)
        return self._detail(placed) if placed else None

    def changed(self, number: int, *, alone: bool) -> JsonObject:
        """The outcome of a change; `alone` says that nothing else differs from what the page shows."""
        placed = self.placed(number)
        assert placed is not None
        row = self._render("row.html", row=placed)
        return self.state() | {"entry": self._detail(placed), "row": row, "alone": alone}

    def _detail(self, placed: Placed) -> JsonObject:
        entry = placed.entry
        return {
            "number": placed.number,
            "seen": placed.seen,
            "id": whole(entry.id),
            "kind": whole(entry.kind),
            "status": entry.status,
            "broken": entry.broken,
            "pages": [self._shown_page(*page) for page in _pages(entry)],
            "source": whole(entry.source),
            "says": whole(entry.says),
            "drafts": [
                {"engine": whole(draft.engine), "values": draft.values and _whole_values(draft.values)}
                for draft in entry.drafts
            ],
            "head": self._render("head.html", row=placed),
            "form": self._render("form.html", row=placed, entry=entry),
        }

    def _shown_page(self, document: str, page: int) -> JsonObject:
        number, problem = self._documents.number(document, page), ""
        try:
            self._documents.source(number)
        except PageError as error:
            problem = error.message + (f" ({error.hint})" if error.hint else "")
        return {"document": whole(document), "page": page, "picture": number, "problem": whole(problem)}

    def _render(self, template: str, **values: Any) -> str:
        return self._templates.get_template(template).render(**values)


def grouped(rows: list[Placed]) -> list[Group]:
    """Entries by section or page, in the order in which they come first."""
    groups: dict[tuple[str, int, str], Group] = {}
    for row in rows:
        section = row.entry.section
        key = ("", 0, section) if section else (row.entry.document, row.entry.page, "")
        groups.setdefault(key, Group(*key, rows=[])).rows.append(row)
    return list(groups.values())


def _has_page(entry: Entry) -> bool:
    return not entry.broken and not (entry.source and not entry.document)


def _pages(entry: Entry) -> tuple[tuple[str, int], ...]:
    return ((entry.document, entry.page), *entry.more_pages) if _has_page(entry) else ()


def _whole_values(values: Mapping[str, str]) -> dict[str, str]:
    return {whole(name): whole(value) for name, value in values.items()}


def ident(name: str) -> str:
    """The name of a field, which can be any text, as an id of the page."""
    return "f-" + re.sub(r"[^a-z0-9_]", lambda found: f"-{ord(found[0]):x}", name)


def shown(field: Field) -> str:
    """The value of a field as its control shows it: what is no text where a text belongs, as JSON."""
    if field.value is None:
        return ""
    return field.value if isinstance(field.value, str) else json.dumps(field.value, ensure_ascii=False)


def whole(value: Any) -> Any:
    """A text that UTF-8 can carry: JSON can hold half a pair of surrogates, a page cannot."""
    if isinstance(value, str) and _SURROGATES.search(value):
        return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", value)
    return value


def _counted(values: Any) -> list[tuple[str, int]]:
    return list(Counter(values).items())


def _math_note() -> str:
    """The reason that equations are shown as source only, or without their fonts; "" if all is here."""
    try:
        read_katex()
    except MissingToolError as error:
        return f"no preview: {error.message}; `{error.hint}` brings it"
    if not has_fonts():
        return "drawn without KaTeX's fonts; `loupe setup math` brings them"
    return ""

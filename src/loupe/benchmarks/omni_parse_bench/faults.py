"""What costs points in an answer whose text is right: for `loupe lint`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from loupe.types import Edit, FormatFault

_FENCED = re.compile(r"```(?:html|markdown|md)?[ \t]*\n(.*?)\n?```[ \t]*(?=\n|\Z)", re.DOTALL | re.IGNORECASE)
_EMPHASIS = re.compile(r"\*\*(?=\S)(?P<text>[^*\n<>]+)(?<=\S)\*\*")
_TAG = re.compile(r"\s*</?[A-Za-z!]")


def _words_around(text: str) -> Sequence[Edit]:
    """Words before a fence around the page: it then is a listing of code, and tables in it are none."""
    found = _FENCED.search(text)
    if found is None or not text[: found.start()].strip() or 2 * len(found[1]) < len(text):
        return ()
    edits = [Edit(0, found.start(1), ""), Edit(found.end(1), len(text), "")]
    return [edit for edit in edits if edit.start < edit.end]


def _markdown_in_html(text: str) -> Sequence[Edit]:
    """Marks of emphasis in HTML: nothing takes them away, and they stand in the text that is compared."""
    if not _TAG.match(text):
        return ()
    marks = (place for found in _EMPHASIS.finditer(text) for place in (found.start(), found.end() - 2))
    return [Edit(place, place + 2, "") for place in marks]


FAULTS = (
    FormatFault(name="words-around-page", meaning="words before a fence around the page", edits=_words_around),
    FormatFault(name="markdown-in-html", meaning="Markdown emphasis in HTML", edits=_markdown_in_html),
)
#: Of the faults that adapters mend, those that cost nothing here: HTML is read as it is, front matter is taken off.
HARMLESS = frozenset(("html-text", "front-matter"))

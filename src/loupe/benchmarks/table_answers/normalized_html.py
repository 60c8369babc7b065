"""Table HTML made alike before TEDS: `th` is `td`, sections and styling go. The normalisation of request 001.

Source: request document 001, section 5.3, after OmniDocBench's; docs/benchmarks/pubtabnet.md. The parser is
BeautifulSoup's `html.parser`, because the published numbers are made with it: it repairs nothing.
"""

from __future__ import annotations

import html
import re
import unicodedata

from loupe.benchmarks.table_answers.soup import parse_html

_TABLE_START = re.compile(r"<table[^>]*>", re.IGNORECASE)
_TABLE_END = re.compile("</table>", re.IGNORECASE)
_ATTRIBUTES = tuple(re.compile(f' {name}="[^"]*"') for name in ("style", "height", "width", "align", "class"))
_BLANKS = re.compile(r"\s+")
_UNWRAPPED = ("span", "sup", "sub", "div", "p")

_ASCII_BLANKS = " \n\t\f\r"
_TOKEN = re.compile(r"""<(/?)([a-z]+)((?: [a-z]+="[^"&<>'\0]*")*+)>|([^<]+)""")
_ATTRIBUTE = re.compile(r' ([a-z]+)="([^"]*)"')
_KEPT_TAGS = frozenset(
    ["html", "body", "table", "tbody", "tfoot", "caption", "tr", "td", "b", "i", "u", "em", "strong"]
)
_SINGLE_VALUED = frozenset(
    ["colspan", "rowspan", "style", "width", "height", "align", "valign", "border", "frame", "rules"]
)
_OTHER_ENTITY = re.compile("&(?!(?:amp|lt|gt|quot|nbsp);)|\0")
_NEW_NAMES = {**dict.fromkeys(_KEPT_TAGS), **dict.fromkeys((*_UNWRAPPED, "thead"), ""), "th": "td"}


def normalize_table(source: str) -> str:
    """A page with one table, from whatever stands between the first `<table ..>` and the last `</table>`.

    Without a table the whole text becomes the inside of one. Raises TableTooLargeError for more tags than are read.
    """
    page = source.strip()
    if page[:5].lower() != "<html":
        page = f"<html><body>{page}</body></html>"
    uniform = _uniform_well_formed(page)
    page = unescape_after_serialising(_uniform_tags(page) if uniform is None else uniform)
    page = unicodedata.normalize("NFKC", page.replace("\n", "")).strip()
    inside = _inside_of_tables(page)
    for attribute in _ATTRIBUTES:
        inside = attribute.sub("", inside)
    inside = _BLANKS.sub(" ", inside.replace("<tbody>", "").replace("</tbody>", ""))
    return f'<html><body><table border="1" >{inside}</table></body></html>'


def _uniform_well_formed(page: str) -> str | None:
    """What `_uniform_tags` makes of a well-formed table of everyday tags, 15 times faster; None for anything else."""
    parts: list[str] = []
    opened: list[str] = []
    position = 0
    while position < len(page):
        token = _TOKEN.match(page, position)
        if token is None:
            return None
        position = token.end()
        closing, name, attributes, text = token.groups()
        if text is not None:
            if _OTHER_ENTITY.search(text):
                return None
            parts.append(text if text.strip(_ASCII_BLANKS) else "\n" if "\n" in text else " ")
            continue
        if name not in _NEW_NAMES or (closing and (attributes or not opened or opened.pop() != name)):
            return None
        if not closing:
            opened.append(name)
            found = _ATTRIBUTE.findall(attributes)
            if len(dict(found)) < len(found) or not _SINGLE_VALUED.issuperset(dict(found)):
                return None
            # BeautifulSoup writes attributes in alphabetical order.
            attributes = "".join(f' {key}="{value}"' for key, value in sorted(found))
        new = _NEW_NAMES[name]
        if new != "":
            parts.append(f"<{closing}{new or name}{attributes}>")
    return None if opened else "".join(parts)


def _uniform_tags(page: str) -> str:
    soup = parse_html(page)
    for tag in soup.find_all("th"):
        tag.name = "td"
    for tag in soup.find_all("thead"):
        tag.unwrap()
    for tag in soup.find_all("math"):
        formula = tag.get("alttext")
        if formula:
            tag.replace_with(f"${formula}$")
        else:
            tag.unwrap()
    for name in _UNWRAPPED:
        for tag in soup.find_all(name):
            tag.unwrap()
    for tag in soup.find_all("colgroup"):
        tag.decompose()
    return str(soup)


def unescape_after_serialising(page: str) -> str:
    """Entities as characters in finished markup, so that the text `&lt;5` turns into a tag's beginning.

    Kept for parity: a known flaw of that system (docs/benchmarks/pubtabnet.md).
    """
    return html.unescape(page)


def _inside_of_tables(page: str) -> str:
    """From the first table's start to the last one's end: several tables merge into one."""
    start = _TABLE_START.search(page)
    if start is None:
        return page
    ends = [end.start() for end in _TABLE_END.finditer(page, start.end())]
    return page[start.end() : ends[-1]] if ends else page

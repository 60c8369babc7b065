"""Model output as HTML that can do no harm: Markdown rendered by markdown-it-py, then cut down by nh3.

What its allow-list leaves: text structure, tables with spans, and code. Nothing loads, links, runs or is styled.
Formulas are not typeset; their LaTeX source is shown as code, so that Markdown cannot eat its underscores.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

#: Characters that are rendered; what is longer is cut there, with a notice. The raw text is not touched by this.
RENDERED_LIMIT = 100_000
#: Levels of quotes and lists that are rendered.
NESTING_LIMIT = 60
#: Elements inside each other, and in all, that a browser lays out without delay; what has more is not rendered.
DEPTH_LIMIT = 200
ELEMENT_LIMIT = 30_000
#: Tasks whose answers are Markdown or HTML; answers of all others are shown as they are.
MARKUP_TASKS = frozenset({"markdown", "table"})

_TAG_NAMES = """
a b blockquote br caption code col colgroup dd del div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i ins kbd li
mark ol p pre q s small span strong sub sup table tbody td tfoot th thead tr u ul
"""
_ATTRIBUTES = {
    "a": {"href"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "ol": {"start"},
    "colgroup": {"span"},
    "col": {"span"},
}
_KINDS = {"math", "math-block", "image"}
_MATH = {"$$": "$$", "$": "$", "\\(": "\\)", "\\[": "\\]"}
#: nh3 escapes `<` in text and `"` in attribute values, so this matches real tags only.
_LINK = re.compile(r'<a href="')
_TAG = re.compile(r"<(/?)(\w+)")
_VOID = frozenset({"br", "hr", "col"})
_UNPRINTABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Rendered:
    """Safe HTML, and what a reader must know about it ("" if it shows everything)."""

    html: str
    notice: str = ""


def render_markdown(text: str) -> Rendered:
    """Safe HTML of a hostile Markdown or HTML text. Bounded in length and nesting, not in time: run it in a worker."""
    notices = []
    if len(text) > RENDERED_LIMIT:
        notices.append(f"Only the first {RENDERED_LIMIT:,} of {len(text):,} characters are rendered.")
        text = text[:RENDERED_LIMIT]
    parser = _parser()
    tokens = parser.parse(_UNPRINTABLE.sub("\ufffd", without_surrogates(text)))
    if any(token.level >= NESTING_LIMIT - 1 for token in tokens):
        notices.append(f"Lists and quotes nested more than {NESTING_LIMIT} levels deep are not rendered.")
    html = sanitize(parser.renderer.render(tokens, parser.options, {}))
    if _is_too_much(html):
        return Rendered("", "Too many elements, or nesting too deep, to render; the source text is shown.")
    return Rendered(html, " ".join(notices))


def _is_too_much(html: str) -> bool:
    """True if sanitised HTML (in which every element is closed) exceeds DEPTH_LIMIT or ELEMENT_LIMIT."""
    depth = 0
    for count, tag in enumerate(_TAG.finditer(html)):
        depth += 0 if tag[2] in _VOID else -1 if tag[1] else 1
        if depth > DEPTH_LIMIT or count > 2 * ELEMENT_LIMIT:
            return True
    return False


def sanitize(html: str) -> str:
    """Cut HTML down to the allow-list. Links lose their target and keep it as a title, so nothing can be followed."""
    clean = nh3.clean(
        without_surrogates(html),
        tags=set(_TAG_NAMES.split()),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        tag_attribute_values={"code": {"data-kind": set(_KINDS)}},
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",
        link_rel=None,
    )
    return _LINK.sub('<a title="', clean)


def without_surrogates(text: str) -> str:
    """Text that can be written as UTF-8: lone surrogates become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True, "breaks": True, "maxNesting": NESTING_LIMIT})
    parser.enable(["table", "strikethrough"])
    parser.inline.ruler.before("escape", "math", _math)
    parser.add_render_rule("image", _show_image)
    parser.add_render_rule("math", _show_math)
    return parser


def _math(state: StateInline, silent: bool) -> bool:
    """`$…$`, `$$…$$`, `\\(…\\)` and `\\[…\\]` as they stand. A single dollar needs a formula's shape, as in Pandoc."""
    source, start = state.src, state.pos
    opening = next((mark for mark in _MATH if source.startswith(mark, start)), "")
    if not opening:
        return False
    begin, closing = start + len(opening), _MATH[opening]
    end = _closing(state, begin, closing)
    content = source[begin:end]
    if end < 0 or not content.strip() or (opening == "$" and not _looks_like_math(content, source[end + 1 : end + 2])):
        return False
    if not silent:
        token = state.push("math", "code", 0)
        token.content, token.markup = content.strip(), opening
    state.pos = end + len(closing)
    return True


def _closing(state: StateInline, begin: int, closing: str) -> int:
    """The end of the formula. A mark that was looked for in vain is not looked for again: the search stays linear."""
    source, absent = state.env.get("math_absent", ("", set()))
    if source is not state.src:
        absent = set()
        state.env["math_absent"] = (state.src, absent)
    end = -1 if closing in absent else state.src.find(closing, begin)
    if end < 0:
        absent.add(closing)
    return end


def _looks_like_math(content: str, following: str) -> bool:
    return not content[0].isspace() and not content[-1].isspace() and not following.isdigit() and len(content) < 2000


def _show_image(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    return f'<code data-kind="image">image: {escape(tokens[index].content or "no description")}</code>'


def _show_math(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    kind = "math-block" if tokens[index].markup in ("$$", "\\[") else "math"
    return f'<code data-kind="{kind}">{escape(tokens[index].content)}</code>'

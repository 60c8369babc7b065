"""Clean the answers for regions, format them by label, and put them together to pages: Markdown and records.

Source: `ResultFormatter` of the GLM-OCR SDK @ cef4d0ea (docs/engines/glm-ocr.md). A word that a hyphen divides is
judged by its letters alone, as there without the package `wordfreq`: results must not depend on what is installed.
Every step is linear in the answer except the search for loops, which is n log n (`loupe.metrics.repetition`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loupe.features.layout.filtering import IMAGE, WholeBox, category_of
from loupe.metrics.repetition import first_run

#: Shorter answers are not searched for loops.
_LOOPS_FROM = 2048
_LINES, _LINE_SHARE, _IN_A_ROW = 10, 0.8, 3
_TAB = "\\t"
_RULERS = tuple(re.compile(rf"({sign})\1{{2,}}") for sign in (r"\.", "·", "_", r"\\_"))
#: The body of a formula in dollars: no bare dollar, and a backslash only with the character that it escapes.
_BODY = re.compile(r"(?>(?:[^$\\]|\\.)*)")
_NUMBERED = re.compile(r"[(（](\d+|[A-Za-z])[)）](.*)")
_LISTED = re.compile(r"(\d+|[A-Za-z])([.)）])(.*)")
_LONE_NEWLINE = re.compile(r"(?<!\n)\n(?!\n)")
_OPENINGS, _CLOSINGS = ("$$", "\\[", "\\("), ("$$", "\\]", "\\)")


def format_region(answer: str, label: str) -> str:
    """The Markdown of one region."""
    category = category_of(label)
    if category == "table" and answer.startswith("<table") and answer.endswith("</table>"):
        return answer.strip()
    if category == "formula" and answer.startswith("$$") and answer.endswith("$$"):
        return _displayed(answer.strip())
    text = clean(answer)
    if category == "formula":
        return _displayed(text)
    return _paragraphs(_titled(text, label)) if category == "text" else text


def clean(answer: str) -> str:
    r"""An answer without literal `\t` around it, long rulers and loops, and with even spaces around formulas."""
    text = _without_last_tabs(answer[_first_not_tab(answer) :].lstrip()).rstrip()
    for ruler in _RULERS:
        text = ruler.sub(r"\1\1\1", text)
    if len(text) >= _LOOPS_FROM:
        text = without_loop(text)
    return space_formulas(text).strip()


def _first_not_tab(text: str) -> int:
    place = 0
    while text.startswith(_TAB, place):
        place += len(_TAB)
    return place


def _without_last_tabs(text: str) -> str:
    """Without literal tabs at the end, or before a newline at the end."""
    end = len(text) - text.endswith("\n")
    while text.endswith(_TAB, 0, end):
        end -= len(_TAB)
    return text[:end]


def without_loop(text: str) -> str:
    """`text` up to the first unit of its first loop; of lines that are nearly all equal, up to the first of three.

    What stands behind a loop is lost. Source: `clean_repeated_content` of the SDK.
    """
    stripped = text.strip()
    run = first_run(stripped)
    if run is not None:
        return stripped[: run.start + run.period]
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n")) if line.strip()]
    if len(lines) < _LINES:
        return text
    common, count = Counter(line for _, line in lines).most_common(1)[0]
    if count < _LINES or count / len(lines) < _LINE_SHARE:
        return text
    equal = [line == common for _, line in lines]
    for place in range(len(lines) - _IN_A_ROW + 1):
        if all(equal[place : place + _IN_A_ROW]):
            return "\n".join(text.split("\n")[: lines[place][0] + 1])
    return text


def space_formulas(text: str) -> str:
    """`$ x $` as `$x$`, and a space between a formula and a letter or digit beside it."""
    parts: list[str] = []
    done = place = 0
    while (opening := text.find("$", place)) >= 0:
        place = opening + 1
        if opening and text[opening - 1] == "$":
            continue
        end = _body_end(text, place)
        # Escaped dollars up to there would open a formula with the same end.
        place = max(place, end)
        if end > opening + 1 and text[end : end + 1] == "$" and text[end + 1 : end + 2] != "$":
            place = end + 1
            formula = text[opening + 1 : end].strip()
            if formula:
                before = text[done:opening]
                parts += [before, " " if before and before[-1].isalnum() else "", f"${formula}$"]
                parts.append(" " if text[place : place + 1].isalnum() else "")
                done = place
    return "".join([*parts, text[done:]])


def _body_end(text: str, start: int) -> int:
    """Return the end of the body of a formula that starts here: at a bare dollar, a stray backslash, or the end."""
    found = _BODY.match(text, start)
    return found.end() if found else start


def _titled(text: str, label: str) -> str:
    """Titles get their hash marks, whatever marks the model gave them."""
    if label == "doc_title":
        return "# " + _without_hashes(text)
    if label == "paragraph_title":
        text = text[2:].lstrip() if text.startswith(("- ", "* ")) else text
        return "## " + _without_hashes(text).lstrip()
    return text


def _without_hashes(text: str) -> str:
    return text.lstrip("#").lstrip() if text.startswith("#") else text


def _displayed(text: str) -> str:
    """A formula between lines of double dollars, without the delimiters that it came with."""
    if text.startswith(_OPENINGS):
        text = text[2:].strip()
    if text.endswith(_CLOSINGS):
        text = text[:-2].strip()
    return f"$$\n{text}\n$$"


def _paragraphs(text: str) -> str:
    """Text as Markdown: code closed, bullets and numbers with a space, every line a paragraph.

    Kept from the SDK: in a text of one line, `1.5 metres` and `a.m.` get a space after the point, too.
    """
    if text.startswith("```") and not text.endswith("```"):
        text += "\n```"
    if text.startswith(("·", "•", "* ")):
        text = "- " + text[1:].lstrip()
    if numbered := _NUMBERED.fullmatch(text):
        text = f"({numbered[1]}) {numbered[2].lstrip()}"
    if listed := _LISTED.fullmatch(text):
        text = f"{listed[1]}{listed[2].replace('）', ')')} {listed[3].lstrip()}"
    return _LONE_NEWLINE.sub("\n\n", text)


#: A bullet's neighbours stand in one line with it within so many thousandths of the page.
_ALIGNED = 10
_WORD = re.compile(r"[a-z][a-z'\-]{2,30}")
#: Longer pieces are no words, whatever they are made of.
_LONGEST_PIECE = 200
_FORMULA_END = "\n$$"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRegion:
    """A region with its answer; None: it was not read, or reading it failed."""

    index: int
    label: str
    content: str | None
    box: WholeBox | None = None
    skipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRegion:
    """A region of a finished page. `label` is its category, `native_label` the detector's."""

    index: int
    label: str
    native_label: str
    content: str | None
    box: WholeBox | None
    image: bool = False
    image_path: str = ""

    def record(self) -> dict[str, Any]:
        """As the SDK writes it to JSON."""
        known: dict[str, Any] = {"index": self.index, "label": self.label, "content": self.content}
        known |= {"bbox_2d": list(self.box) if self.box else None, "native_label": self.native_label}
        return known | ({"image_path": self.image_path} if self.image_path else {})


@dataclass(frozen=True, slots=True)
class FormattedPages:
    """The finished pages of a document."""

    markdown: str
    pages: tuple[tuple[PageRegion, ...], ...]


def format_pages(
    pages: Sequence[Sequence[ReadRegion]], *, crops: Collection[tuple[int, WholeBox]] = frozenset()
) -> FormattedPages:
    """Put pages together. Images appear in the Markdown if their crop, named by page and box, is kept."""
    finished = [_with_image_paths(format_page(regions), number, crops) for number, regions in enumerate(pages)]
    texts = ("\n\n".join(text for region in page if (text := _markdown(region, n))) for n, page in enumerate(finished))
    return FormattedPages("\n\n".join(texts), tuple(map(tuple, finished)))


def format_page(regions: Sequence[ReadRegion]) -> list[PageRegion]:
    """One page: every region in form, then what takes several regions. Regions without an answer are left out."""
    found: list[PageRegion] = []
    for region in sorted(regions, key=lambda one: one.index):
        category = category_of(region.label)
        image = region.skipped or category == IMAGE
        content = None if region.content is None else format_region(region.content, region.label)
        if image or (content and content.strip()):
            found.append(
                PageRegion(
                    index=len(found),
                    label=category,
                    native_label=region.label,
                    content=content,
                    box=region.box,
                    image=image,
                )
            )
    return _with_bullets(_with_whole_words(_with_formula_numbers(found)))


def _with_formula_numbers(page: Sequence[PageRegion]) -> list[PageRegion]:
    """A number before or after a formula becomes its tag; one without a formula beside it is dropped."""
    merged: list[PageRegion] = []
    place = 0
    while place < len(page):
        region, following = page[place], page[place + 1] if place + 1 < len(page) else None
        place += 1
        if region.native_label == "formula_number":
            if following is not None and following.label == "formula":
                merged.append(_tagged(following, region))
                place += 1
        elif region.label == "formula" and following is not None and following.native_label == "formula_number":
            merged.append(_tagged(region, following))
            place += 1
        else:
            merged.append(region)
    return _numbered(merged)


def _tagged(formula: PageRegion, number: PageRegion) -> PageRegion:
    content, tag = formula.content or "", (number.content or "").strip()
    if (tag.startswith("(") and tag.endswith(")")) or (tag.startswith("（") and tag.endswith("）")):
        tag = tag[1:-1]
    if not content.endswith(_FORMULA_END):
        return formula
    return replace(formula, content=f"{content[: -len(_FORMULA_END)]} \\tag{{{tag}}}{_FORMULA_END}")


def _with_whole_words(page: Sequence[PageRegion]) -> list[PageRegion]:
    """A text that ends in a hyphen goes on with the next text in lower case, if the two pieces make a word.

    Kept from the SDK: what stands between the two comes after them then, and two hyphens before one continuation both
    get it.
    """
    merged: list[PageRegion] = []
    taken: set[int] = set()
    following = _next_in_lower_case(page)
    for place, region in enumerate(page):
        if place in taken:
            continue
        behind = following[place]
        whole = None
        if behind is not None and region.label == "text":
            whole = _joined(region.content or "", page[behind].content or "")
        if whole is not None and behind is not None:
            taken.add(behind)
        merged.append(region if whole is None else replace(region, content=whole))
    return _numbered(merged)


def _next_in_lower_case(page: Sequence[PageRegion]) -> list[int | None]:
    """For each place the next text after it that begins with a lower-case letter."""
    following: list[int | None] = []
    nearest: int | None = None
    for place in range(len(page) - 1, -1, -1):
        following.append(nearest)
        if page[place].label == "text" and (page[place].content or "").lstrip()[:1].islower():
            nearest = place
    return following[::-1]


def _joined(before: str, after: str) -> str | None:
    """The two texts as one without the hyphen between them; None if they do not make a word."""
    before, after = before.rstrip(), after.lstrip()
    if not (before.endswith("-") and after[:1].islower()):
        return None
    begun, rest = before[:-1].rsplit(None, 1), after.split(None, 1)
    return before[:-1] + after if begun and _is_word((begun[-1], rest[0])) else None


def _is_word(pieces: tuple[str, str]) -> bool:
    if sum(map(len, pieces)) > _LONGEST_PIECE:
        return False
    word = "".join(pieces).strip().lower()
    return bool(_WORD.fullmatch(word)) and "--" not in word and "''" not in word


def _with_bullets(page: list[PageRegion]) -> list[PageRegion]:
    """A text between two bullets, in one line with them on the left, is one, too."""
    page = list(page)
    for place in range(1, len(page) - 1):
        before, region, after = page[place - 1 : place + 2]
        if any(one.native_label != "text" or not one.box for one in (before, region, after)):
            continue
        content = region.content or ""
        listed = all((one.content or "").startswith("- ") for one in (before, after))
        if listed and not content.startswith("- ") and _aligned(before, region) and _aligned(after, region):
            page[place] = replace(region, content="- " + content)
    return page


def _aligned(one: PageRegion, other: PageRegion) -> bool:
    return one.box is not None and other.box is not None and abs(one.box[0] - other.box[0]) <= _ALIGNED


def _numbered(page: Sequence[PageRegion]) -> list[PageRegion]:
    return [replace(region, index=index) for index, region in enumerate(page)]


def _with_image_paths(
    page: Sequence[PageRegion], number: int, crops: Collection[tuple[int, WholeBox]]
) -> list[PageRegion]:
    """Images whose crop is kept, numbered on their page."""
    finished: list[PageRegion] = []
    images = 0
    for region in page:
        if region.image and region.box and (number, region.box) in crops:
            region = replace(region, image_path=f"imgs/cropped_page{number}_idx{images}.jpg")
            images += 1
        finished.append(region)
    return finished


def _markdown(region: PageRegion, page: int) -> str:
    if not region.image:
        return region.content or ""
    if not region.image_path:
        return ""
    image = region.image_path.rpartition("idx")[2].removesuffix(".jpg")
    return f"![Image {page}-{image}]({region.image_path})"

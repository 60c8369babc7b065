"""What leaves the Markdown before anything is looked for in it.

Protocol: docs/protocols/omnidocbench.md#images to #page-tags.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_OPENING_FENCES = tuple(re.compile(f"^```{word}\n?", re.MULTILINE) for word in ("markdown", "html", "latex"))
_FENCE_AT_LINE_END = re.compile("```\n?$", re.MULTILINE)
_UNDERSCORES = re.compile("_{4,}")
_SPACES = re.compile(" {4,}")


def prepare(markdown: str) -> str:
    """Steps 1 to 4, one after the other."""
    return without_page_tags(shorten_runs(without_fence_marks(without_images(markdown))))


class Image(NamedTuple):
    """An image of the Markdown: where it stands, and the text that stands for it."""

    start: int
    end: int
    alt: str


def images(markdown: str) -> list[Image]:
    """All `![…](…)`, lazily and within a line."""
    found, begin = list[Image](), markdown.find("![")
    while begin >= 0:
        line_end = markdown.find("\n", begin)
        line_end = len(markdown) if line_end < 0 else line_end
        middle = markdown.find("](", begin + 2, line_end)
        end = markdown.find(")", middle + 2, line_end) if middle >= 0 else -1
        if end < 0:  # then nor has any later image of this line an end
            begin = markdown.find("![", line_end)
            continue
        found.append(Image(begin, end + 1, markdown[begin + 2 : middle]))
        begin = markdown.find("![", end + 1)
    return found


def without_images(markdown: str) -> str:
    """Delete all images (#images)."""
    parts, cursor = list[str](), 0
    for image in images(markdown):
        parts.append(markdown[cursor : image.start])
        cursor = image.end
    return "".join([*parts, markdown[cursor:]])


def without_fence_marks(markdown: str) -> str:
    """Delete the fence marks of Markdown, HTML and LaTeX, and any mark at the end of a line (#fences).

    Most closing marks go, and bare opening ones too, while the opening mark of any other language stays as text.
    """
    for fence in _OPENING_FENCES:
        markdown = fence.sub("", markdown)
    return _FENCE_AT_LINE_END.sub("", markdown)


def shorten_runs(markdown: str) -> str:
    """Four underscores and four spaces are the longest runs (#long-runs)."""
    return _SPACES.sub("    ", _UNDERSCORES.sub("____", markdown))


def without_page_tags(markdown: str) -> str:
    """Delete the tags of a page, where they have no attributes (#page-tags)."""
    for tag in ("<html>", "</html>", "<body>", "</body>"):
        markdown = markdown.replace(tag, "")
    return markdown

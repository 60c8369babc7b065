"""The steps of OmniDocBench's extraction as its protocol words them: with regexes, and in quadratic time."""

from __future__ import annotations

import re
from collections.abc import Callable

from bs4 import BeautifulSoup

Span = tuple[int, int]


def images(text: str) -> str:
    return re.sub(r"!\[.*?\]\(.*?\)", "", text)


def outermost(text: str, begin: str, end: str, step: int, offset: int = 0) -> list[Span]:
    """The stack scan of docs/protocols/omnidocbench.md#latex-tables and #html-tables; `begin` and `end` are regexes."""
    spans: list[Span] = []
    stack: list[int] = []
    current = 0
    while current < len(text):
        first, last = (re.compile(mark).search(text, current) for mark in (begin, end))
        if first and (last is None or first.start() < last.start()):
            stack.append(first.start())
            current = first.start() + step
        elif last:
            start = stack.pop() if stack else -1
            if start >= 0 and not stack:
                spans.append((offset + start, offset + last.start() + step))
            current = last.start() + step
        else:
            break
    if stack:
        bottom = stack[0] + 16
        spans += outermost(text[bottom:], begin, end, step, offset + bottom)
    return spans


def formulas(text: str) -> list[tuple[int, int, str, bool]]:
    """Start, end, content and whether it is inline (docs/protocols/omnidocbench.md#formulas)."""
    found = []
    for match in re.finditer(r"\$\$.*?\$\$|\\\[.*?\\\]|\$.*?\$|\\\(.*?\\\)", text, re.DOTALL):
        line = " ".join(match[0].strip().split("\n"))
        within = re.compile(r"\$\$(.*?)\$\$|\$(.*?)\$|\\\((.*?)\\\)", re.DOTALL)
        first = within.search(line)
        inline = first is not None and not first[1]
        if first is None:
            content = line
        elif inline:
            content = within.sub(lambda each: f"\\[{each[2] or ''}{each[3] or ''}\\]", line)
        else:
            content = within.sub(lambda each: f"\\[{each[1] or ''}\\]", line)
        found.append((match.start(), match.end(), content, inline))
    return found


def with_each_stretch_replaced(text: str, render: Callable[[str], str]) -> str:
    """Each match is looked for again, from the start (docs/protocols/omnidocbench.md#bar-tables)."""
    for stretch in re.compile(r"\|\s*.*?\s*\|\n", re.DOTALL).findall(text):
        text = text.replace(stretch, render(stretch), 1)
    return text


def headings(text: str) -> str:
    for pattern, flags in (
        (r"\\title\{(.*?)\}", 0),
        (r"\\title\s*\{\s*(.*?)\s*\}", re.DOTALL),
        (r"\\text\s*\{\s*(.*?)\s*\}", re.DOTALL),
        (r"\\section\*?\{(.*?)\}", 0),
        (r"\\section\*?\{\s*(.*?)\s*\}", re.DOTALL),
    ):
        text = re.sub(pattern, r"\1", text, flags=flags)
    return text


def inside_of_brackets(latex: str) -> str:
    match = re.search(r"\\\[(.+?)(?<!\\)\\\]", latex)
    return match[1].strip() if match else latex


def simplified(markup: str) -> str:
    """Normalised with BeautifulSoup (docs/protocols/omnidocbench.md#normalisation)."""
    soup = BeautifulSoup(markup, "html.parser")
    for header in soup.find_all("th"):
        header.name = "td"
    for section in soup.find_all("thead"):
        section.unwrap()
    for formula in soup.find_all("math"):
        formula.replace_with(f"${formula.get('alttext', '')}$")
    for span in soup.find_all("span"):
        span.unwrap()
    return str(soup)

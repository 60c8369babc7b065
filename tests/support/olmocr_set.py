"""A set in the layout of olmOCR-Bench, as large as the published one or a share of it, and a candidate's answers.

Categories, numbers of tests and pages, and the mixture of types are those of the published set; every text, table and
equation is invented here. Answers are wrong in the ways real ones are: another spelling of the same equation, a symbol
exchanged, a line lost. Used by tests (a few pages) and by perf/olmocr.py (all 1,403).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

#: File → pages, and its tests by type (docs/protocols/olmocr_bench.md#data and #prompts).
PUBLISHED: dict[str, tuple[int, dict[str, int]]] = {
    "arxiv_math": (522, {"math": 2927}),
    "old_scans_math": (36, {"math": 458}),
    "table_tests": (188, {"table": 1020, "baseline": 2}),
    "old_scans": (98, {"present": 279, "absent": 63, "order": 177, "baseline": 7}),
    "headers_footers": (266, {"absent": 760}),
    "multi_column": (231, {"order": 884}),
    "long_tiny_text": (62, {"present": 442}),
}
EQUATIONS_ON_A_PAGE = 30
EMPTY_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)
_WORDS = [
    a + b + c for a in ("ba", "cor", "den", "lum", "tra") for b in ("fi", "gra", "no", "pel") for c in ("s", "nt")
]
_LETTERS = ["a", "b", "k", "n", "x", "y", "z", r"\alpha", r"\lambda", r"\theta", r"\mu", "A", "M", r"\mathbb{R}"]
_RELATIONS = ["=", r"\leq", r"\in", r"\to", r"\approx"]

Record: TypeAlias = dict[str, Any]
Page: TypeAlias = tuple[list[Record], str]


def write_olmocr_set(root: Path, *, share: float = 1.0, seed: int = 5) -> Path:
    """Tests, empty PDFs and the answers of one candidate; the folder of the answers."""
    rng = random.Random(seed)
    answers = root / "candidate"
    for folder in (root / "pdfs", answers):
        folder.mkdir(parents=True)
    for category, (pages, kinds) in PUBLISHED.items():
        pages, records = max(1, round(pages * share)), []
        for number in range(pages):
            asked = {kind: _portion(round(count * share), pages, number) for kind, count in kinds.items()}
            name = f"{category}_{number:04}"
            tests, answer = _page(rng, asked)
            for place, test in enumerate(tests):
                records.append({"pdf": f"{name}.pdf", "page": 1, "id": f"{name}_{place:02}", **test})
            (root / "pdfs" / f"{name}.pdf").write_bytes(EMPTY_PDF)
            (answers / f"{name}_pg1_repeat1.md").write_text(answer, encoding="utf-8")
        lines = (json.dumps(record) + "\n" for record in records)
        (root / f"{category}.jsonl").write_text("".join(lines), encoding="utf-8")
    return answers


def _portion(total: int, pages: int, number: int) -> int:
    """How many of all fall to this page."""
    return total * (number + 1) // pages - total * number // pages


def _page(rng: random.Random, asked: dict[str, int]) -> Page:
    paragraphs = [" ".join(rng.choices(_WORDS, k=60)) for _ in range(6)]
    makers: dict[str, Callable[[random.Random, int, list[str]], list[Record]]] = {
        "math": _math,
        "table": _table,
        "present": _present,
        "absent": _absent,
        "order": _order,
    }
    tests = [test for kind, make in makers.items() if asked.get(kind) for test in make(rng, asked[kind], paragraphs)]
    if asked.get("baseline"):
        tests.append({"type": "baseline", "max_length": 10_000})
    return tests, "\n\n".join(paragraphs)


def _present(rng: random.Random, count: int, paragraphs: list[str]) -> list[Record]:
    found = [_excerpt(rng, paragraphs) for _ in range(count)]
    lost = [text.replace(text[len(text) // 2], "q") if rng.random() < 0.3 else text for text in found]
    return [{"type": "present", "text": text, "max_diffs": rng.choice([0, 2, 4])} for text in lost]


def _absent(rng: random.Random, count: int, paragraphs: list[str]) -> list[Record]:
    return [
        {"type": "absent", "text": _excerpt(rng, paragraphs) if rng.random() < 0.3 else f"Page {rng.random()}"}
        for _ in range(count)
    ]


def _order(rng: random.Random, count: int, paragraphs: list[str]) -> list[Record]:
    return [
        {
            "type": "order",
            "before": _excerpt(rng, paragraphs[:4]),
            "after": _excerpt(rng, paragraphs[2:]),
            "max_diffs": 3,
        }
        for _ in range(count)
    ]


def _excerpt(rng: random.Random, paragraphs: list[str]) -> str:
    words = rng.choice(paragraphs).split()
    start = rng.randrange(len(words) - 6)
    return " ".join(words[start : start + 6])


def _table(rng: random.Random, count: int, paragraphs: list[str]) -> list[Record]:
    rows = [[f"{rng.choice(_WORDS)} {rng.randrange(1000)}" for _ in range(6)] for _ in range(14)]
    html = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    paragraphs.insert(3, f"<table>{html}</table>")
    tests = []
    for _ in range(count):
        row, column = rng.randrange(1, 14), rng.randrange(1, 6)
        wrong = rng.random() < 0.3
        left = rows[rng.randrange(14)][0] if wrong else rows[row][column - 1]
        tests.append({"type": "table", "cell": rows[row][column], "left": left, "up": rows[row - 1][column]})
    return tests


def _math(rng: random.Random, count: int, paragraphs: list[str]) -> list[Record]:
    equations = [_equation(rng) for _ in range(max(EQUATIONS_ON_A_PAGE, count))]
    answered = [_answered(rng, equation) for equation in equations]
    for equation in answered:
        place = rng.randrange(len(paragraphs))
        paragraphs[place] += rng.choice([f" \\({equation}\\) ", f"\n\\[{equation}\\]\n", f" ${equation}$ "])
    return [{"type": "math", "math": equation} for equation in rng.sample(equations, count)]


def _answered(rng: random.Random, equation: str) -> str:
    """The equation as an engine may write it: to the letter, differently, with a fault, or not as TeX at all."""
    fate = rng.random()
    if fate < 0.15:
        return equation
    spaced = equation.replace("=", " = ").replace(r"\frac{", r"\dfrac{" if fate < 0.4 else r"\frac {")
    if fate < 0.75:
        return spaced.replace("^{2}", "^2").replace("_{i}", "_i")
    if fate < 0.97:
        letter = rng.choice(["x", "y", "n", "k"])
        return spaced.replace(letter, "w", 1) if letter in spaced else spaced + "+1"
    return spaced + r"\unknown{"


def _equation(rng: random.Random) -> str:
    sides = [" + ".join(_term(rng, 2) for _ in range(rng.randint(1, 3))) for _ in range(2)]
    return f"{sides[0]} {rng.choice(_RELATIONS)} {sides[1]}"


def _term(rng: random.Random, depth: int) -> str:
    letter = rng.choice(_LETTERS)
    if depth == 0:
        return rng.choice([letter, f"{letter}_{{i}}", f"{letter}^{{2}}", str(rng.randrange(100))])
    inner = _term(rng, depth - 1)
    forms = [
        f"{letter} {inner}",
        f"\\frac{{{inner}}}{{{_term(rng, depth - 1)}}}",
        f"\\sqrt{{{inner}}}",
        f"\\sum_{{{letter}=1}}^{{n}} {inner}",
        f"\\left( {inner} - {_term(rng, depth - 1)} \\right)",
        f"\\operatorname{{rank}}({inner})",
        f"{letter}_{{i}}^{{{inner}}}",
    ]
    return rng.choice(forms)

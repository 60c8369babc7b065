"""How long OmniDocBench takes to score: a made-up set of its size, clean, in sentences, and wrapped.

    python perf/omnidocbench.py [--version 1.5] [--pages 1355] [--cores 1,2] [--stages]

Pages are made from words below, in the kinds of the real set (papers, newspapers, books, reports, slides), with about
its number of blocks, formulas and tables and their lengths. Answers are the ground truth with every fiftieth character
misread: as it stands; with every sentence a paragraph of its own; and wrapped at 45 characters, every line a paragraph.
Printed per form: wall and CPU seconds, CPU milliseconds of the mean and of the slowest page, peak memory of a process,
and how often the official evaluator may have reached its 30 s; with `--stages`, CPU per stage on one core. Goals on two
cores: clean under 15 s, the others under 45 s, at most 300 MiB. The official evaluator needs 0.05, 0.8 and 1.4 s a page
and core (issue 4). In 1.6 (1,651 pages) a third of the formulas has several lines; goals: 20 s, others 60 s.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import random
import re
import resource
import textwrap
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

WORDS = re.findall(
    "[a-z]+",
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which "
    "one you were all her she there would their we him been has when who will no more if out so up said what its about "
    "than into them can only other time new some could these two may first then do any like my now over such our man "
    "me even harbour compass lantern ledger winter market railway chapter measurement temperature equation surface "
    "pressure method result figure analysis population government election committee report quarter revenue growth",
)
CHARACTERS = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会"
    "可主发年动同工也能下过子说产种面而方后多定行学法所"
)


class Kind(NamedTuple):
    """One kind of page: how often there is one in a hundred, and what stands on it."""

    share: int
    blocks: tuple[int, int]
    characters: tuple[int, int]
    formulas: int = 0
    tables: float = 0.0
    chinese: bool = False


KINDS = (
    Kind(share=20, blocks=(8, 18), characters=(150, 900), formulas=3, tables=0.5),
    Kind(share=10, blocks=(18, 40), characters=(100, 1200)),
    Kind(share=25, blocks=(6, 16), characters=(80, 500), formulas=1, tables=0.3),
    Kind(share=25, blocks=(8, 20), characters=(40, 250), tables=0.8, chinese=True),
    Kind(share=20, blocks=(3, 9), characters=(15, 80), chinese=True, tables=0.3),
)
FORMS = ("clean", "sentences", "wrapped at 45")


def make_page(number: int, version: str = "1.5") -> tuple[dict[str, Any], dict[str, str]]:
    """The ground truth of one page, and the answer to it in every form."""
    dice = random.Random(number)
    kind = dice.choices(KINDS, [kind.share for kind in KINDS])[0]
    elements: list[dict[str, Any]] = [
        {"category_type": "header", "text": _prose(dice, 25, kind.chinese), "order": None}
    ]
    for _ in range(dice.randint(*kind.blocks)):
        category = "title" if dice.random() < 0.2 else "text_block"
        length = dice.randint(10, 60) if category == "title" else dice.randint(*kind.characters)
        elements.append({"category_type": category, "text": _prose(dice, length, kind.chinese)})
    elements += [{"category_type": "equation_isolated", "latex": _formula(dice, version)} for _ in range(kind.formulas)]
    if dice.random() < kind.tables:
        elements.append({"category_type": "table", "html": _table(dice)})
    for order, element in enumerate(elements):
        element |= {"order": order or None, "anno_id": order, "attribute": {}}
    answers = {form: "\n\n".join(_answer(dice, element, form) for element in elements[1:]) for form in FORMS}
    return {"layout_dets": elements, "extra": {"relation": []}}, answers


def _prose(dice: random.Random, length: int, chinese: bool) -> str:
    words = []
    while sum(map(len, words)) < length:
        size = dice.randint(6, 22)
        words.append(
            "".join(dice.choices(CHARACTERS, k=size)) + "。"
            if chinese
            else " ".join(dice.choices(WORDS, k=size)).capitalize() + f" {dice.randint(1, 2000)}. "
        )
    return "".join(words).strip()


def _formula(dice: random.Random, version: str) -> str:
    if version == "1.6" and dice.random() < 1 / 3:
        name = dice.choice(("aligned", "cases", "array}{l"))
        rows = " \\\\ ".join(_line(dice) for _ in range(dice.randint(2, 5)))
        return f"$$\n\\begin{{{name}}} {rows} \\end{{{name.partition('}')[0]}}}\n$$"
    return f"$$\n{_line(dice)}\n$$"


def _line(dice: random.Random) -> str:
    terms = (
        rf"\frac{{{dice.choice('abc')}_{{{dice.randint(1, 9)}}}}}{{\sqrt{{x^{dice.randint(2, 9)}}}}}" for _ in range(4)
    )
    return f"{' + '.join(terms)} = {dice.randint(0, 99)}"


def _table(dice: random.Random) -> str:
    rows, columns = dice.randint(4, 24), dice.randint(3, 8)
    cells = [[f"{dice.random() * 100:.2f}" for _ in range(columns)] for _ in range(rows)]
    return (
        "<table>"
        + "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells)
        + "</table>"
    )


def _answer(dice: random.Random, element: dict[str, Any], form: str) -> str:
    if "text" not in element:
        return str(element.get("latex") or element["html"])
    text = "".join("x" if dice.random() < 0.02 else character for character in element["text"])
    if form == "sentences":
        return "\n\n".join(re.split(r"(?<=[.。])\s*", text))
    return "\n\n".join(textwrap.wrap(text, 45)) if form == "wrapped at 45" else text


def measure(task: tuple[int, str, str]) -> tuple[float, float, bool]:
    """CPU seconds of one page, peak memory of the process in MiB, and whether upstream may have timed out."""
    from loupe.benchmarks.omnidocbench.page_match import match_page
    from loupe.benchmarks.omnidocbench.rules import VERSIONS

    page, answers = make_page(task[0], task[2])
    start = time.process_time()
    match = match_page(page, answers[task[1]], rules=VERSIONS[task[2]])
    seconds = time.process_time() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, match.facts.would_time_out


def run(form: str, pages: int, cores: int, version: str) -> str:
    """One line of the table."""
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        pool.map(measure, [(-1, form, version)] * cores, chunksize=1)
        start = time.perf_counter()
        found = pool.map(measure, [(number, form, version) for number in range(pages)], chunksize=16)
        wall = time.perf_counter() - start
    cpu = [seconds for seconds, _, _ in found]
    return (
        f"{form:14} {cores} cores {wall:7.1f} s wall {sum(cpu):7.1f} s CPU {sum(cpu) / pages * 1000:7.1f} ms mean "
        f"{max(cpu) * 1000:7.0f} ms most {max(memory for _, memory, _ in found):5.0f} MiB "
        f"{sum(slow for _, _, slow in found):4} pages may time out upstream"
    )


def stages(form: str, pages: int, version: str) -> Iterator[str]:
    """CPU milliseconds per page of the stages that `match_page` is made of."""
    from loupe.benchmarks.omnidocbench.line_match import match_lines
    from loupe.benchmarks.omnidocbench.lines import predicted_lines, truth_lines
    from loupe.benchmarks.omnidocbench.page_match import match_page
    from loupe.benchmarks.omnidocbench.records import PredictedItem, Work
    from loupe.benchmarks.omnidocbench.rules import VERSIONS
    from loupe.benchmarks.omnidocbench.scored_pages import score_table

    rules = VERSIONS[version]
    spent: dict[str, float] = defaultdict(float)
    for number in range(pages):
        page, answers = make_page(number, version)
        marks = [("", time.process_time())]
        items = rules.read_answer(answers[form]).items
        marks.append(("extract", time.process_time()))
        truth = truth_lines(rules.read_ground_truth(page, "parity").mixed(), "parity", rules)
        texts = [PredictedItem(index, item) for index, item in enumerate(items) if "table" not in item.category]
        predicted = predicted_lines(texts, "parity", rules)
        marks.append(("normalise", time.process_time()))
        tables = rules.assign_tables(rules.read_ground_truth(page, "parity").tables(), items, "parity", rules)
        marks.append(("assign tables", time.process_time()))
        match_lines(truth, predicted, Work(), rules)
        marks.append(("match", time.process_time()))
        for sample in tables.samples:
            score_table(sample)
        marks.append(("TEDS", time.process_time()))
        match_page(page, answers[form], rules=rules)
        marks.append(("whole page, normal forms known", time.process_time()))
        for (_, before), (name, after) in itertools.pairwise(marks):
            spent[name] += after - before
    for name, seconds in spent.items():
        yield f"  {name:32} {seconds / pages * 1000:6.2f} ms"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default="1.5", choices=("1.5", "1.6"))
    parser.add_argument("--pages", type=int)
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--stages", action="store_true")
    options = parser.parse_args()
    pages = options.pages or {"1.5": 1355, "1.6": 1651}[options.version]
    for form in FORMS:
        for cores in map(int, options.cores.split(",")):
            print(run(form, pages, cores, options.version), flush=True)
        if options.stages:
            print(*stages(form, pages // 5, options.version), sep="\n", flush=True)


if __name__ == "__main__":
    main()

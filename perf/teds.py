"""TEDS against the official way (the `apted` package), in one run: how much faster, and whether the numbers are equal.

`python perf/teds.py` (two minutes, most of it for apted at 1,000 cells; needs the extra `perf`);
`python perf/teds.py --bulk`: both metrics of 9,115 tables of about PubTabNet's sizes, on all cores.

The official evaluator is rebuilt here from docs/metrics/teds.md. Times are CPU time, with parsing and building trees;
of small tables, the mean over several pairs. Predictions are the reference with misread characters, lost and added
cells, rows and spans.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from lxml import html as lxml_html

from loupe.metrics.teds import compare_tables, teds

Rows = list[list[str]]

SHAPES: Final = {20: (5, 4), 100: (10, 10), 400: (20, 20), 1_000: (50, 20)}
#: How many pairs of tables a line stands for: small ones differ more from each other, and take less time.
PAIRS: Final = {20: 25, 100: 5}
NOISE: Final = {"few errors": 0.4, "some errors": 1.5, "many errors": 4.0}
GOALS: Final = {20: 50, 100: 100, 400: 300, 1_000: 1_000}
GOAL_UNRELATED: Final = 50
WORDS: Final = (
    "age",
    "sex",
    "mean",
    "total",
    "control",
    "baseline",
    "group",
    "patients",
    "treatment",
    "response",
    "study",
)
PUBTABNET_TABLES: Final = 9_115


def main() -> None:
    """Print one of the two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bulk", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SHAPES))
    arguments = parser.parse_args()
    if arguments.bulk:
        bulk()
    else:
        against_apted(arguments.sizes)


def against_apted(sizes: list[int]) -> None:
    """Ours and theirs on the same pairs."""
    print("cells  prediction     TEDS    ours ms    apted ms   ratio    goal   |difference|")
    for size in sizes:
        draw = random.Random(size)
        for name in (*NOISE, "unrelated"):
            lines = [
                against_apted_once(*a_pair(draw, size, name), long=size == 1_000) for _ in range(PAIRS.get(size, 1))
            ]
            score, ours, theirs = (statistics.mean(column) for column in list(zip(*lines, strict=True))[:3])
            goal = GOAL_UNRELATED if name == "unrelated" else GOALS.get(size, 0)
            print(
                f"{size:5}  {name:12}  {score:6.3f}  {ours * 1e3:9.3f}  {theirs * 1e3:10.1f}  {theirs / ours:6.0f}"
                f"  {goal or '':6}   {max(difference for *_, difference in lines):.1e}",
                flush=True,
            )


def a_pair(draw: random.Random, size: int, kind: str) -> tuple[str, str]:
    """The pages of a prediction and its reference."""
    rows = table(draw, *SHAPES[size])
    predicted = table(draw, *SHAPES[size]) if kind == "unrelated" else with_errors(draw, rows, NOISE[kind])
    return page(draw, predicted), page(draw, rows)


def against_apted_once(prediction: str, reference: str, *, long: bool) -> tuple[float, float, float, float]:
    """The score, seconds of ours and of theirs, and how far the two scores are apart."""
    score, expected = teds(prediction, reference), official_teds(prediction, reference)
    ours = statistics.median(cpu_time(teds, prediction, reference) for _ in range(15))
    theirs = min(cpu_time(official_teds, prediction, reference) for _ in range(1 if long else 3))
    return score, ours, theirs, abs(score - expected)


def bulk() -> None:
    """A validation split of PubTabNet's size, as the benchmark scores it."""
    draw = random.Random(0)
    pairs = []
    for _ in range(PUBTABNET_TABLES):
        # Like the 20 tables that IBM gives as examples: a dozen rows of four to eight columns, some large.
        shape = min(60, 2 + int(draw.expovariate(1 / 10))), draw.choice((2, 3, 4, 4, 5, 5, 6, 6, 7, 8, 10))
        rows = table(draw, *shape)
        pairs.append((page(draw, with_errors(draw, rows, draw.choice((0.0, 0.5, 1.0, 2.0)))), page(draw, rows)))
    started = time.perf_counter()
    cores = os.cpu_count() or 1
    with multiprocessing.Pool(cores) as pool:
        scores = pool.starmap(both, pairs, chunksize=50)
        seconds = time.perf_counter() - started
    print(f"{len(pairs):,} tables, mean TEDS {statistics.mean(score for score, _ in scores):.4f}, ", end="")
    print(f"TEDS-struct {statistics.mean(score for _, score in scores):.4f}: {seconds:.1f} s on {cores} cores")


def both(prediction: str, reference: str) -> tuple[float, float]:
    """Both metrics of one pair."""
    comparison = compare_tables(prediction, reference)
    return comparison.teds, comparison.teds_struct


def cpu_time(function: Callable[[str, str], float], prediction: str, reference: str) -> float:
    """Seconds of one call."""
    started = time.process_time()
    function(prediction, reference)
    return time.process_time() - started


def table(draw: random.Random, rows: int, columns: int) -> Rows:
    """Labels on the left, numbers of several kinds, and some empty cells."""
    return [[cell(draw, column) for column in range(columns)] for _ in range(rows)]


def cell(draw: random.Random, column: int) -> str:
    """What stands in one cell."""
    if column == 0:
        return " ".join(draw.choices(WORDS, k=draw.randint(1, 4)))
    value = draw.random() * 100
    kinds = (
        f"{value:.2f}",
        f"{value:.1f} ± {draw.random() * 9:.1f}",
        f"{int(value)} ({value / 7:.1f}%)",
        str(int(value * 50)),
        "",
    )
    return draw.choices(kinds, weights=(4, 2, 1, 2, 1))[0]


def with_errors(draw: random.Random, rows: Rows, noise: float) -> Rows:
    """Misread characters in cells; cells and rows that are lost or added."""
    found = []
    for row in rows:
        if draw.random() < 0.03 * noise:
            continue
        if draw.random() < 0.02 * noise:
            found.append([cell(draw, column) for column in range(len(row))])
        read = [misread(draw, text) if draw.random() < 0.2 * noise else text for text in row]
        if draw.random() < 0.08 * noise:
            del read[draw.randrange(len(read))]
        if draw.random() < 0.04 * noise:
            read.insert(draw.randrange(len(read) + 1), "")
        found.append(read)
    return found


def misread(draw: random.Random, text: str) -> str:
    """One or two characters wrong."""
    characters = list(text)
    for _ in range(draw.randint(1, 2)):
        if characters:
            characters[draw.randrange(len(characters))] = draw.choice("0123456789abc ")
    return "".join(characters)


def page(draw: random.Random, rows: Rows) -> str:
    """A page with the table; one cell in fifty spans two columns."""
    lines = []
    for row in rows:
        cells = ((' colspan="2"' if draw.random() < 0.02 else "", text) for text in row)
        lines.append(f"<tr>{''.join(f'<td{span}>{text}</td>' for span, text in cells)}</tr>")
    sections = f"<thead>{''.join(lines[:1])}</thead><tbody>{''.join(lines[1:])}</tbody>"
    return f"<html><body><table>{sections}</table></body></html>"


@dataclass(slots=True)
class Node:
    """A node of the official evaluators' trees."""

    label: tuple[str, int, int]
    tokens: list[str] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)


def official_teds(prediction: str, reference: str) -> float:
    """TEDS as the official evaluators compute it: apted, with a rename cost from Levenshtein on lists of tokens."""
    import Levenshtein
    from apted import APTED

    class Costs:
        """What APTED asks of a configuration."""

        valuecls = int

        def delete(self, node: Node) -> int:
            return 1

        def insert(self, node: Node) -> int:
            return 1

        def rename(self, one: Node, two: Node) -> float:
            if one.label != two.label:
                return 1.0
            if one.label[0] == "td" and (one.tokens or two.tokens):
                return Levenshtein.distance(one.tokens, two.tokens) / max(len(one.tokens), len(two.tokens))
            return 0.0

        def children(self, node: Node) -> list[Node]:
            return node.children

    parser = lxml_html.HTMLParser(remove_comments=True, encoding="utf-8")
    tables = [lxml_html.fromstring(text, parser=parser).xpath("body/table")[0] for text in (prediction, reference)]
    elements = max(len(found.xpath(".//*")) for found in tables)
    distance = APTED(*(node_of(found) for found in tables), Costs()).compute_edit_distance()
    return 1.0 - float(distance) / elements


def node_of(element: lxml_html.HtmlElement) -> Node:
    """The tree below an element."""
    if element.tag == "td":
        spans = int(element.get("colspan", "1")), int(element.get("rowspan", "1"))
        return Node((element.tag, *spans), tokens_of(element)[1:-1])
    return Node((element.tag, 0, 0), [], [node_of(child) for child in element])


def tokens_of(element: lxml_html.HtmlElement) -> list[str]:
    """Tags and characters of a cell."""
    tokens = [f"<{element.tag}>", *(element.text or "")]
    for child in element:
        tokens += tokens_of(child)
    return [*tokens, f"</{element.tag}>", *(element.tail or "" if element.tag != "td" else "")]


if __name__ == "__main__":
    main()

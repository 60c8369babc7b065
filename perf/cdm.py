"""CDM: pairs per second, cold and with drawn ground truth, on one core and more, against one TeX run per formula.

python perf/cdm.py [--pairs 400] [--broken 0.1] [--profile unimernet] [--jobs 1 2] [--official 6] [--parity]

The other way is measured in the same run: for each formula a TeX run, a page drawn by Ghostscript at 200 dpi, and a
search through all pixels for every colour, as the official programs do it (Node and ImageMagick left out, in its
favour). Formulas are made here, in lengths and layouts like those of UniMER-Test; one prediction in ten is broken TeX,
in the ways of `BREAKS` in turn, a third differ in a symbol. Times are CPU seconds of all processes, which a busy
machine hardly blurs, and seconds by the clock.
`--parity` compares every box and score with the official ones (tests/oracles), with both renderers: some minutes.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image
from tests.support import ghostscript

from loupe.metrics import cdm_pairs
from loupe.metrics.cdm import PROFILES, CdmResult, NotColouredError
from loupe.metrics.cdm.colouring import colour
from loupe.metrics.cdm.drawing.rendering import layout, render
from loupe.metrics.cdm.drawing.tex_runs import set_formulas
from loupe.metrics.cdm.drawing.tex_setup import cjk_font, template_of
from loupe.scoring.oracles import oracle_cases

LETTERS = [*"abcdefghijklmnpqrstuvwxyzABCDEFGHKLMNPQRSTUVXYZ0123456789"]
GREEK = [rf"\{name}" for name in ("alpha", "beta", "gamma", "delta", "lambda", "mu", "phi", "omega", "sigma")]

#: What models write that TeX complains of, `{}` being the formula: cut off, ends too few or too many, unheard names.
BREAKS = (
    r"{} \frac {{ a",
    r"{} + \text{{if x",
    r"{} + {{\mathrm{{b}} + c",
    r"{} }}",
    r"\unheard{{a}} {}",
    r"\begin{{unheard}} {} \end{{unheard}}",
    r"\begin{{equation}} {} \end{{equation}}",
    r"\begin{{array}}{{cc}} {} & b \\ c",
    r"\begin{{matrix}} {} & b",
    r"{} \end{{array}}",
    r"\left( {}",
    r"{} x_a_b",
    r"{} $",
    r"{} & c \cr",
    r"\mathbf{{ \mathbf{{ {}",
)


def formula(draw: random.Random, length: int, depth: int = 0) -> str:
    """About `length` characters of mathematics."""
    parts: list[str] = []
    while length > 0:
        kind = draw.random()
        if depth < 3 and length > 6 and kind < 0.16:
            inner = formula(draw, length // 3, depth + 1)
            parts.append(rf"\frac{{{inner}}}{{{formula(draw, length // 4, depth + 1)}}}")
            length -= length // 3 + length // 4 + 1
        elif depth < 3 and length > 4 and kind < 0.30:
            parts.append(f"{draw.choice(LETTERS[:50])}_{{{formula(draw, 2, 3)}}}^{{{formula(draw, 1, 3)}}}")
            length -= 4
        elif depth < 2 and length > 5 and kind < 0.36:
            parts.append(rf"\sqrt{{{formula(draw, length // 4, depth + 1)}}}")
            length -= length // 4 + 1
        elif kind < 0.42:
            parts.append(draw.choice([r"\sum", r"\int", r"\partial", r"\infty", r"\mathbf{x}", r"\hat{y}"]))
            length -= 1
        elif kind < 0.62:
            parts.append(draw.choice(["+", "-", "=", r"\leq", r"\cdot", ",", "(", ")"]))
            length -= 1
        else:
            parts.append(draw.choice(GREEK if kind > 0.85 else LETTERS[:50]))
            length -= 1
    return " ".join(parts) or "x"


def made_pairs(count: int, broken: float, seed: int = 6) -> list[tuple[str, str]]:
    """(prediction, ground truth): lengths fall off like those of UniMER-Test, from five characters to some hundreds."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        truth = formula(draw, min(400, max(5, int(draw.lognormvariate(3.5, 0.8)))))
        chance = draw.random()
        prediction = truth
        if chance < broken:
            prediction = BREAKS[len(found) % len(BREAKS)].format(truth)
        elif chance < broken + 0.33:
            prediction = truth.replace(" ", f" {draw.choice(GREEK)} ", 1)
        found.append((prediction, truth))
    return found


def cpu() -> float:
    """CPU seconds of this process and of all that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


T = TypeVar("T")


def timed(what: Callable[[], T]) -> tuple[T, float, float]:
    """(what came of it, seconds by the clock, CPU seconds)."""
    clock, used = time.perf_counter(), cpu()
    found = what()
    return found, time.perf_counter() - clock, cpu() - used


def score_part(pairs: list[tuple[str, str]], profile: str, folder: str) -> int:
    """One process's share, in batches of 200."""
    for start in range(0, len(pairs), 200):
        cdm_pairs(pairs[start : start + 200], profile=profile, cache=Path(folder))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def score_all(pairs: list[tuple[str, str]], profile: str, folder: str, jobs: int) -> int:
    """All pairs on so many processes; the largest memory of one, in MiB."""
    shares = [pairs[number::jobs] for number in range(jobs)]
    with ProcessPoolExecutor(jobs) as pool:
        return max(pool.map(score_part, shares, [profile] * jobs, [folder] * jobs))


def the_other_way(pairs: list[tuple[str, str]], profile: str) -> None:
    """A TeX run and a drawn page for every formula, and a look through the page for every colour."""
    chosen = PROFILES[profile]
    for one in (side for pair in pairs for side in pair):
        try:
            coloured = colour(one, chosen)
        except NotColouredError:
            continue  # Upstream fails on it before TeX is run.
        (page,) = set_formulas(template_of(coloured, chosen, cjk_font=cjk_font()), [coloured.tex])
        if page.failure:
            continue
        for pixels in drawn_pixels(page.pdf):
            for each in coloured.colours[: len(coloured.tokens)]:
                np.argwhere(np.all(pixels == np.array(each, dtype=np.uint8), axis=2))


def drawn_pixels(pdf: bytes) -> Iterator[np.ndarray]:
    """The first page, cropped to what is not white."""
    kept: list[np.ndarray] = []
    original = ghostscript.ink_of_pixels
    ghostscript.ink_of_pixels = lambda page: (kept.append(page), original(page))[1]
    try:
        for ink in ghostscript.drawn_pages(pdf, range(1)):
            if not isinstance(ink, str) and ink.all:
                left, top, right, bottom = ink.all
                yield np.asarray(Image.fromarray(kept[-1]).crop((left - 8, top - 8, right + 8, bottom + 8)))
    finally:
        ghostscript.ink_of_pixels = original


RENDERERS = {"layout": layout, "ghostscript": ghostscript.ghostscript}


def scored(pairs: list[tuple[str, str]], profile: str, renderer: str) -> list[CdmResult]:
    """CDM of pairs, with either renderer."""
    return cdm_pairs(pairs, profile=profile) if renderer == "layout" else ghostscript.exact_cdm(pairs, profile)


def parity() -> None:
    """Every official box and score, with both renderers."""
    formulas, pairs = oracle_cases("cdm/renders.jsonl"), oracle_cases("cdm/cases.jsonl")
    for profile in ("omnidocbench", "unimernet"):
        for renderer in RENDERERS:
            drawn = render(
                [each["input"]["latex"] for each in formulas], profile=PROFILES[profile], draw=RENDERERS[renderer]
            )
            boxes = [
                max((abs(a - b) for a, b in zip(box, official, strict=True)), default=0)
                for case, one in zip(formulas, drawn, strict=True)
                if case["expected"][profile].get("rendered")
                for box, (_, official) in zip(one.boxes, case["expected"][profile]["boxes"], strict=True)
            ]
            found = scored([(case["input"]["pred"], case["input"]["gt"]) for case in pairs], profile, renderer)
            same = sum(
                not one.counted
                if case["expected"][profile].get("dropped")
                else one.f1 == case["expected"][profile]["F1"]
                for case, one in zip(pairs, found, strict=True)
            )
            print(
                f"{profile:14} {renderer:12} boxes equal {boxes.count(0):,} of {len(boxes):,}, largest difference "
                f"{max(boxes)} px; F1 equal {same} of {len(pairs)}",
                flush=True,
            )


def parity_of_pairs() -> None:
    """Every official score, and box where there are any, of OmniDocBench 1.6 and MDPBench, with both renderers."""
    for profile, file in (("omnidocbench_v16", "omnidocbench_v16/cdm.jsonl"), ("mdpbench", "mdpbench/cdm_pairs.jsonl")):
        pairs = oracle_cases(file)
        for renderer in RENDERERS:
            found = scored([(case["input"]["pred"], case["input"]["gt"]) for case in pairs], profile, renderer)
            boxes = [
                max(abs(a - b) for a, b in zip(one.box, official, strict=True))
                for case, result in zip(pairs, found, strict=True)
                for drawn, expected in (
                    (result.reference, case["expected"].get("gt")),
                    (result.prediction, case["expected"].get("pred")),
                )
                if expected
                for one, official in zip(drawn, [box for _, box in expected["boxes"] if box], strict=True)
            ]
            same = sum(one.f1 == case["expected"]["F1_score"] for case, one in zip(pairs, found, strict=True))
            seen = ""
            if boxes:
                seen = f"boxes equal {boxes.count(0):,} of {len(boxes):,}, largest difference {max(boxes)} px; "
            print(f"{profile:14} {renderer:12} {seen}F1 equal {same} of {len(pairs)}", flush=True)


def share(text: str) -> float:
    """A number from 0 to 1."""
    if not 0 <= float(text) <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no share from 0 to 1")
    return float(text)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--broken", type=share, default=0.1, help="share of predictions that are broken TeX, 0 to 1")
    parser.add_argument("--profile", default="unimernet", choices=sorted(PROFILES))
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--official", type=int, default=6, help="pairs measured the other way; 0: none")
    parser.add_argument("--parity", action="store_true")
    asked = parser.parse_args()
    if asked.parity:
        parity()
        parity_of_pairs()
        return
    pairs = made_pairs(asked.pairs, asked.broken)
    other = 0.0
    if asked.official:
        _, clock, used = timed(partial(the_other_way, pairs[: asked.official], asked.profile))
        other = used / asked.official
        print(f"one run per formula: {clock / asked.official:.2f} s, {other:.2f} CPU s a pair")
    for jobs in asked.jobs:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("cold", "ground truth drawn"):
                if name != "cold":
                    pairs = [(f"{prediction} + q", truth) for prediction, truth in pairs]
                memory, clock, used = timed(partial(score_all, pairs, asked.profile, folder, jobs))
                each = used / len(pairs)
                ratio = f", {other / each:.0f} times less CPU" if other else ""
                speed = f"{len(pairs) / clock:.0f} pairs/s, {1000 * each:.1f} CPU ms a pair{ratio}; {memory} MiB"
                whole = f"23,757 pairs in {23_757 * clock / len(pairs) / 60:.1f} min (load {os.getloadavg()[0]:.0f})"
                print(f"{jobs} processes, {name}: {speed}; {whole}", flush=True)


if __name__ == "__main__":
    main()

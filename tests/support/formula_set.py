"""A set of formulas of our own in the layout of UniMER-Test, drawn by TeX in the manner of its four subsets.

    python -m tests.support.formula_set DIR [--count 25]          # so many of each subset; needs TeX
    LOUPE_FORMULAS=DIR loupe serve python:tests/support/formula_set.py:read

`read` is an engine for them: it knows a picture by its looks, and answers the ground truth with the errors of real
engines: another notation, fences, misread and missing symbols, formulas that break off.
"""

from __future__ import annotations

import argparse
import os
import random
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from loupe.types import Request

SUBSETS = ("spe", "cpe", "sce", "hwe")
_LETTERS = "abcdefghkmnpqrstuvwxyzABDFGHKLMNRSTV"
_GREEK = [rf"\{name}" for name in ("alpha", "beta", "gamma", "lambda", "mu", "phi", "omega", "theta", "Delta", "Omega")]
_RELATIONS = ["=", r"\leq", r"\in", r"\to", r"\equiv", ">"]
_MISREAD = {"x": r"\times", "0": "o", "1": "l", "u": r"\mu", "v": r"\nu", "w": r"\omega", "p": r"\rho", "a": r"\alpha"}
_SIDE = 24


def formula(dice: random.Random, subset: str) -> str:
    """A formula as long and as deep as those of a subset tend to be."""
    if subset == "cpe" and dice.random() < 0.25:
        rows = [" & ".join(_term(dice, 1) for _ in range(3)) for _ in range(dice.randint(2, 3))]
        table = r" \\ ".join(rows)
        return rf"{_term(dice, 1)} = \left( \begin{{array}} {{ c c c }} {table} \end{{array}} \right)"
    terms = {"spe": (2, 4), "cpe": (6, 13), "sce": (2, 6), "hwe": (2, 5)}[subset]
    depth = 2 if subset == "cpe" else 1
    parts = [_term(dice, depth)]
    for number in range(dice.randint(*terms) - 1):
        parts += [dice.choice(_RELATIONS) if number == 0 else dice.choice("+-"), _term(dice, depth)]
    return " ".join(parts)


def _term(dice: random.Random, depth: int) -> str:
    def inner() -> str:
        return _term(dice, depth - 1)

    atoms: list[Callable[[], str]] = [
        lambda: dice.choice(_LETTERS),
        lambda: dice.choice(_GREEK),
        lambda: str(dice.randint(0, 99)).replace("", " ").strip(),
        lambda: f"{dice.choice(_LETTERS)} _ {{ {dice.choice('ijkn012')} }}",
    ]
    nested: list[Callable[[], str]] = [
        lambda: rf"\frac {{ {inner()} + {inner()} }} {{ {inner()} }}",
        lambda: rf"\sqrt {{ {inner()} }}",
        lambda: f"{dice.choice(_LETTERS)} ^ {{ {inner()} }}",
        lambda: rf"\sum _ {{ i = 1 }} ^ {{ n }} {inner()}",
        lambda: rf"\int _ {{ 0 }} ^ {{ \infty }} {inner()} d x",
        lambda: rf"\hat {{ {dice.choice(_LETTERS)} }} ( {inner()} )",
        lambda: rf"\operatorname {{ s i n }} {inner()}",
    ]
    return dice.choice(nested if depth and dice.random() < 0.6 else atoms)()


def write_formula_set(root: Path, count: int, *, seed: int = 5) -> None:
    """Write `UniMER-Test/` with `count` formulas of each subset, as text and as pictures."""
    dice = random.Random(seed)
    folder = root / "UniMER-Test"
    for subset in SUBSETS:
        formulas = [formula(dice, subset) for _ in range(count)]
        (folder / subset).mkdir(parents=True)
        (folder / f"{subset}.txt").write_text("\n".join(formulas) + "\n", encoding="utf-8")
        for number, drawing in enumerate(draw(formulas)):
            _in_the_manner_of(subset, drawing, dice).save(folder / subset / f"{number:07d}.png")


def draw(formulas: list[str]) -> list[Image.Image]:
    """The formulas in black on white, as TeX sets them."""
    from loupe.metrics.cdm.drawing.drawings import draw_pairs

    pairs = draw_pairs([(each, each) for each in formulas], profile="unimernet")
    return [_opened(pair.reference.picture) for pair in pairs]


def _opened(picture: bytes) -> Image.Image:
    import io

    with Image.open(io.BytesIO(picture)) as image:
        grey = np.asarray(image.convert("L"), dtype=np.float64)
    # The darkest shade is that of matched ink; black is what print has.
    low = min(float(grey.min()), 200.0)
    return Image.fromarray(np.clip((grey - low) * 255 / (255 - low), 0, 255).astype(np.uint8))


def _in_the_manner_of(subset: str, drawing: Image.Image, dice: random.Random) -> Image.Image:
    """Print as it is; screen captures small, grey and blurred; handwriting thick, slanted and shaky."""
    if subset == "sce":
        small = drawing.resize((max(drawing.width * 2 // 3, 8), max(drawing.height * 2 // 3, 8)))
        paper = dice.randint(225, 245)
        return small.filter(ImageFilter.GaussianBlur(0.6)).point(lambda value: 40 + value * (paper - 40) // 255)
    if subset != "hwe":
        return drawing
    grey = np.asarray(drawing.filter(ImageFilter.MinFilter(3)))
    height, width = grey.shape
    rows, columns = np.mgrid[0 : height + 16, 0 : width + 40]
    phase = dice.random() * 6
    down = rows - 8 + 3 * np.sin(columns / 23 + phase)
    right = columns - 20 + (down - height / 2) * 0.18 + 1.5 * np.sin(down / 9 + phase)
    inside = (down >= 0) & (down < height) & (right >= 0) & (right < width)
    shaky = np.full(rows.shape, 255, dtype=np.uint8)
    shaky[inside] = grey[down[inside].astype(int), right[inside].astype(int)]
    return Image.fromarray(shaky).filter(ImageFilter.GaussianBlur(0.5))


def misread(latex: str, dice: random.Random) -> str:
    """The ground truth as an engine may give it: right in four of ten, in another notation or wrong in the others."""
    chance = dice.random()
    compact = re.sub(r"(?<![A-Za-z]) | (?![A-Za-z])", "", latex)
    if chance < 0.2:
        return latex
    if chance < 0.4:
        return dice.choice(["$$ {} $$", "```latex\n{}\n```", "{}", r"\[ {} \]"]).format(compact)
    tokens = latex.split(" ")
    for _ in range(1 if chance < 0.75 else 3):
        place = dice.randrange(len(tokens))
        if len(tokens[place]) == 1 and tokens[place].isalnum():
            tokens[place] = _MISREAD.get(tokens[place], dice.choice(_GREEK))
        elif tokens[place] in "+-=":
            tokens[place] = dice.choice("+-=")
    if chance > 0.95:
        tokens = tokens[: len(tokens) * 2 // 3]
    elif chance > 0.88:
        tokens += ["+", dice.choice(_LETTERS), "+", dice.choice(_LETTERS)]
    return " ".join(tokens)


def _looks(image: Image.Image) -> np.ndarray:
    small = image.convert("L").resize((4 * _SIDE, _SIDE), Image.Resampling.BOX)
    return np.append(np.asarray(small, dtype=np.float32).ravel(), 40 * np.log(image.width / image.height))


@lru_cache(maxsize=1)
def _known() -> tuple[np.ndarray, list[str]]:
    folder = Path(os.environ["LOUPE_FORMULAS"]) / "UniMER-Test"
    looks, formulas = [], []
    for subset in SUBSETS:
        for number, line in enumerate((folder / f"{subset}.txt").read_text(encoding="utf-8").splitlines()):
            with Image.open(folder / subset / f"{number:07d}.png") as image:
                looks.append(_looks(image))
            formulas.append(line)
    return np.stack(looks), formulas


def read(request: Request) -> str:
    """The formula that looks most like this picture, misread."""
    looks, formulas = _known()
    with Image.open(str(request.images[0])) as image:
        nearest = int(np.abs(looks - _looks(image)).sum(axis=1).argmin())
    return misread(formulas[nearest], random.Random(formulas[nearest]))


def main() -> None:
    """Write a set."""
    parser = argparse.ArgumentParser(description="Formulas of our own in the layout of UniMER-Test.")
    parser.add_argument("root", type=Path)
    parser.add_argument("--count", type=int, default=25, help="formulas of each subset")
    asked = parser.parse_args()
    write_formula_set(asked.root, asked.count)


if __name__ == "__main__":
    main()

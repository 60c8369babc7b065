"""Make the pages and the ground truth of the benchmark `sample_pages` (docs/benchmarks/sample_pages.md).

    python script/make_sample_pages.py [FOLDER]

Words come from sample_pages/content.toml alone: typst draws them, references.py makes the ground truth from them, and
this script compares each reference with the text layer of the page as typeset before it writes anything. Needs the
Python package `typst` and the fonts of Debian's `fonts-noto-cjk`. The same fonts, typst and Pillow give the same bytes.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
import typst
from PIL import Image, ImageFilter

from sample_pages import references as truth

SOURCES = Path(__file__).parent / "sample_pages"
TARGET = Path(__file__).parents[1] / "src/loupe/benchmarks/sample_pages_data"
SEED = 20240511

CONFIG = """\
[benchmark]
title = "Sample pages made by Loupe"
version = "1"
headline = "text_similarity"
"""


def typeset(name: str, dpi: float) -> Image.Image:
    """The only page of a template, in colour."""
    png = typst.compile(SOURCES / f"{name}.typ", format="png", ppi=dpi)
    assert isinstance(png, bytes)
    return Image.open(io.BytesIO(png)).convert("RGB")


def text_layer(name: str) -> list[str]:
    """The text of each page as typeset."""
    pdf = typst.compile(SOURCES / f"{name}.typ", format="pdf")
    assert isinstance(pdf, bytes)
    document = pypdfium2.PdfDocument(pdf)
    return [page.get_textpage().get_text_range() for page in document]


def save_gray(page: Image.Image, path: Path, levels: int = 16) -> None:
    """Sixteen grays are enough for type, and a quarter of the bytes."""
    page.convert("L").quantize(levels).save(path, optimize=True)


def grain(size: tuple[int, int], random: np.random.Generator, *, coarse: float) -> np.ndarray[Any, Any]:
    """Smooth random relief, mean 0, deviation 1: paper fibre, or uneven light when `coarse` is large."""
    small = random.normal(size=(max(2, int(size[1] / coarse)), max(2, int(size[0] / coarse)))).astype(np.float32)
    relief = np.asarray(Image.fromarray(small).resize(size, Image.Resampling.BICUBIC))
    return (relief - relief.mean()) / relief.std()


def thermal_paper(page: Image.Image, random: np.random.Generator) -> Image.Image:
    """A receipt photographed on a table: faded print that varies down the strip, grey paper, a slight turn."""
    ink = 1 - np.asarray(page.convert("L"), np.float32) / 255
    fade = 0.78 + 0.10 * grain(page.size, random, coarse=90)
    shade = 226 + 5 * grain(page.size, random, coarse=160) + 2 * random.normal(size=ink.shape)
    paper = Image.fromarray(np.clip(shade - 175 * ink * fade, 0, 255).astype(np.uint8))
    wide = Image.new("L", (page.width + 90, page.height + 70), 96)
    wide.paste(paper, (45, 35))
    turned = wide.rotate(-1.1, Image.Resampling.BICUBIC, fillcolor=96)
    return turned.filter(ImageFilter.GaussianBlur(0.5))


def poor_scan(page: Image.Image, random: np.random.Generator) -> Image.Image:
    """A copy of a copy: skew, blur, uneven light, broken strokes, specks and a dark edge."""
    turned = page.convert("L").rotate(1.6, Image.Resampling.BICUBIC, fillcolor=255)
    ink = 1 - np.asarray(turned.filter(ImageFilter.GaussianBlur(1.1)), np.float32) / 255
    worn = ink * np.clip(0.86 + 0.2 * grain(page.size, random, coarse=5), 0.25, 1.1)
    light = 214 + 12 * grain(page.size, random, coarse=280)
    pixels = light - 185 * worn + 13 * random.normal(size=ink.shape)
    pixels[random.random(ink.shape) < 0.0006] = 40
    pixels[:, :14] -= np.linspace(120, 0, 14)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.4))


def empty_scan(page: Image.Image, random: np.random.Generator) -> Image.Image:
    """The back of a sheet: paper, a little noise, a shadow along one edge."""
    pixels = 243 + 3 * grain(page.size, random, coarse=200) + 2 * random.normal(size=(page.height, page.width))
    pixels[:, -9:] -= np.linspace(0, 60, 9)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def draw_pages(folder: Path) -> None:
    """Every image and PDF, under the names that `samples()` uses."""
    random = np.random.default_rng(SEED)
    for name, dpi in {"prose": 150, "two_columns": 140, "small_print": 160, "formulas": 140, "chinese": 130}.items():
        save_gray(typeset(name, dpi), folder / f"{name}.png")
    for name, dpi in {"table_page": 140, "table": 140, "formula": 200}.items():
        save_gray(typeset(name, dpi), folder / f"{name}.png")
    save_gray(typeset("rotated", 110).transpose(Image.Transpose.ROTATE_90), folder / "rotated.png")
    typeset("form", 140).save(folder / "form.jpg", quality=72)
    thermal_paper(typeset("receipt", 190), random).save(folder / "receipt.jpg", quality=70)
    poor_scan(typeset("scan", 130), random).save(folder / "scan.jpg", quality=45)
    empty_scan(typeset("blank", 100), random).save(folder / "blank.jpg", quality=55)
    pdf = typst.compile(SOURCES / "handbook.typ", format="pdf", timestamp=1704067200)
    assert isinstance(pdf, bytes)
    (folder / "handbook.pdf").write_bytes(pdf)


def sample(
    ident: str, image: str, reference: object, *, task: str = "text", group: str = "", **more: str
) -> dict[str, Any]:
    """One line of samples.jsonl; `more` is `prompt` and tags. Samples of one page form one group."""
    prompt = {"prompt": more.pop("prompt")} if "prompt" in more else {}
    tags = {"language": "en", "quality": "clean"} | more
    return {"id": ident, "image": image, "task": task, "reference": reference, **prompt, "tags": tags, "group": group}


def samples() -> list[dict[str, Any]]:
    """The lines of samples.jsonl."""
    return [
        sample("prose", "prose.png", truth.prose(), kind="prose"),
        sample("two-columns", "two_columns.png", truth.two_columns(), kind="columns"),
        sample("small-print", "small_print.png", truth.small_print(), kind="small print"),
        sample("receipt", "receipt.jpg", truth.receipt(), kind="receipt", quality="photo", group="receipt"),
        sample("form", "form.jpg", truth.form(), kind="form", group="form"),
        sample("table-page", "table_page.png", truth.table_page(), kind="table", group="table"),
        sample("scan", "scan.jpg", truth.scan(), kind="letter", quality="poor scan"),
        sample("rotated", "rotated.png", truth.rotated(), kind="notice", quality="rotated"),
        sample("chinese", "chinese.png", truth.chinese(), kind="prose", language="zh"),
        sample("blank", "blank.jpg", "", kind="blank", quality="photo", language="none"),
        sample("handbook-1", "handbook.pdf#page=1", truth.handbook(1), kind="pdf", group="handbook"),
        sample("handbook-2", "handbook.pdf#page=2", truth.handbook(2), kind="pdf", group="handbook"),
        sample("formulas", "formulas.png", truth.formulas(), task="markdown", kind="formulas", group="formulas"),
        sample("formula", "formula.png", truth.formula(), task="formula", kind="formulas", group="formulas"),
        sample("table", "table.png", truth.table_html(), task="table", kind="table", group="table"),
        sample(
            "receipt-fields",
            "receipt.jpg",
            truth.receipt_fields(),
            task="fields",
            kind="receipt",
            quality="photo",
            group="receipt",
        ),
        sample("form-fields", "form.jpg", truth.form_fields(), task="fields", kind="form", group="form"),
        sample(
            "receipt-question",
            "receipt.jpg",
            [truth.WORDS["receipt"]["total"]],
            task="question",
            prompt=truth.WORDS["receipt"]["question"],
            kind="receipt",
            quality="photo",
            group="receipt",
        ),
        sample(
            "form-class",
            "form.jpg",
            "form",
            task="class",
            prompt="What is this document? Answer with one word: form, letter, receipt, table.",
            kind="form",
            group="form",
        ),
    ]


def check_references() -> None:
    """Every page says exactly what its reference says, in the same order, white space aside."""
    pages = {
        "prose": [truth.prose()],
        "two_columns": [truth.two_columns()],
        "small_print": [truth.small_print()],
        "receipt": [truth.receipt()],
        "form": [truth.form()],
        "table_page": [truth.table_page()],
        "scan": [truth.scan()],
        "rotated": [truth.rotated()],
        "chinese": [truth.chinese()],
        "handbook": [truth.handbook(1), truth.handbook(2)],
    }
    for name, references in pages.items():
        drawn = text_layer(name)
        assert len(drawn) == len(references), f"{name}: {len(drawn)} pages"
        for found, reference in zip(drawn, references, strict=True):
            a, b = "".join(found.split()), "".join(reference.split())
            if name == "table_page":
                # A cell over two rows is drawn after its row: here only the characters can be compared.
                a, b = "".join(sorted(a)), "".join(sorted(b))
            where = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            near = slice(max(0, where - 20), where + 30)
            assert a == b, f"{name}: page has {a[near]!r}, reference {b[near]!r}"


def main() -> None:
    """Check, draw, write, and say how large it became."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    check_references()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as drafts:
        draw_pages(Path(drafts))
        for path in sorted(Path(drafts).iterdir()):
            path.replace(folder / path.name)
    rows = (json.dumps(row, ensure_ascii=False) + "\n" for row in samples())
    (folder / "samples.jsonl").write_text("".join(rows), encoding="utf-8")
    (folder / "loupe.toml").write_text(CONFIG, encoding="utf-8")
    total = sum(path.stat().st_size for path in folder.iterdir())
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:9,} {path.name}")
    print(f"{total:9,} bytes in {folder}")


if __name__ == "__main__":
    main()

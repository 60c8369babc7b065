"""Make the pictures of README.md and docs/: screenshots of real reports, and one drawing, light and dark.

    python -m script.make_pictures [report] [match] [stages]        # all if none is named

- `report`: what `loupe demo` writes where no Tesseract is installed; its table again with marks, as `leaderboard`.
- `match`: a page and an answer of ours (script/pictures/) in OmniDocBench's layout, scored by `loupe score`.
- `stages`: drawn by script/pictures/stages.py.

Needs Chromium and the extra `dev`.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from PIL import Image
from playwright.sync_api import Browser, Page
from script.pictures.stages import stages
from tests.support.report_browser import chromium, opened

ROOT = Path(__file__).parents[1]
SOURCES = Path(__file__).parent / "pictures"
TARGET = ROOT / "docs/pictures"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
#: Width of the window in CSS pixels, and how many of the picture's there are to each: for sharp screens.
WIDTH, SCALE = 1180, 2

#: The page's blocks with their boxes, as the browser has laid them out.
BLOCKS = """() => [...document.querySelectorAll("[data-category]")].map(each => {
    const {left, top, right, bottom} = each.getBoundingClientRect()
    const text = each.innerText.replace(/\\s+/g, " ")
    return {...each.dataset, box: [left, top, right, bottom], text, html: each.outerHTML}
})"""
#: Numbered marks beside the sentence and the caption, and below the columns: docs/report.md says what each part is.
MARKS = """selectors => {
    document.querySelector(".caption").style.marginTop = "42px"
    selectors.forEach((selector, index) => {
        const part = document.querySelector(selector), box = part.getBoundingClientRect(), table = part.closest("table")
        const left = table ? (box.left + box.right) / 2 - 11 : box.left - 25
        const top = scrollY + (table ? table.getBoundingClientRect().bottom + 10 : box.top + 1)
        const mark = document.createElement("div")
        mark.textContent = index + 1
        mark.style.cssText = `position:absolute;left:${left}px;top:${top}px;width:22px;height:22px;border-radius:50%;`
            + "background:#b3261e;color:#fff;font:700 13px/22px sans-serif;text-align:center"
        document.body.append(mark)
    })
}"""
MARKED = (
    *(".conclusion", ".leaderboard tbody td.rank", ".leaderboard tbody .engine", ".leaderboard tbody .headline .value"),
    *(".leaderboard tbody svg.whisker", ".leaderboard tbody td:nth-last-child(2)", ".leaderboard tbody td:last-child"),
    ".caption",
)


def main(names: list[str]) -> None:
    """Make the pictures of these names."""
    TARGET.mkdir(exist_ok=True)
    wanted = names or ["report", "match", "stages"]
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for name in ("report", "match"):
            if name in wanted:
                work = Path(folder, name)
                work.mkdir()
                take(browser, name, demo(work) if name == "report" else toy(browser, work))
    if "stages" in wanted:
        for scheme in SCHEMES:
            (TARGET / f"stages-{scheme}.svg").write_text(stages(scheme), encoding="utf-8")


def take(browser: Browser, name: str, report: Path) -> None:
    """Screenshots of this report in both schemes."""
    for scheme in SCHEMES:
        after = "#s=harbour" * (name == "match")
        with opened(browser, report, scheme=scheme, width=WIDTH, scale=SCALE, after=after) as seen:
            if name == "match":
                seen.page.locator(".unit").first.wait_for()
                save(seen.page, f"match-{scheme}", top=66, bottom=860)
            else:
                seen.page.locator(".card img").first.wait_for()
                save(seen.page, f"report-{scheme}", top=0, bottom=462)
                seen.page.evaluate(MARKS, MARKED)
                save(seen.page, f"leaderboard-{scheme}", top=168, bottom=506)


def save(page: Page, name: str, *, top: int, bottom: int) -> None:
    """A band of the window as a small PNG."""
    png = page.screenshot(clip={"x": 0, "y": top, "width": WIDTH, "height": bottom - top})
    picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(TARGET / f"{name}.png", optimize=True)


def loupe(*words: str | Path, folder: Path, path: str = os.environ["PATH"]) -> None:
    """Run the command in this folder; what it says is shown if it fails."""
    command, around = [sys.executable, "-m", "loupe", *words], {**os.environ, "PATH": path}
    done = subprocess.run(command, cwd=folder, env=around, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"loupe {' '.join(map(str, words))}: {done.stderr}")


def demo(work: Path) -> Path:
    """The report of `loupe demo` where no Tesseract is installed: the same on every machine."""
    loupe("demo", folder=work, path=str(Path(sys.executable).parent))
    return work / "report.html"


def toy(browser: Browser, work: Path) -> Path:
    """The report of one page in OmniDocBench's layout."""
    page = browser.new_page(viewport={"width": 760, "height": 1000}, device_scale_factor=SCALE)
    page.goto((SOURCES / "page.html").as_uri())
    (work / "data/images").mkdir(parents=True)
    page.screenshot(path=work / "data/images/harbour.png")
    blocks = [annotation(number, block) for number, block in enumerate(page.evaluate(BLOCKS))]
    page.close()
    info = {"image_path": "harbour.png", "page_attribute": {"language": "english"}}
    info |= {"width": 760 * SCALE, "height": 1000 * SCALE}
    pages = [{"page_info": info, "layout_dets": blocks, "extra": {"relation": []}}]
    (work / "data/OmniDocBench.json").write_text(json.dumps(pages), encoding="utf-8")
    (work / "my-engine").mkdir()
    (work / "my-engine/harbour.md").write_bytes((SOURCES / "answer.md").read_bytes())
    loupe("score", "omnidocbench@1.5", "my-engine", "--data", "data", folder=work)
    loupe("report", *work.glob("runs/*/omnidocbench"), "-o", "match.html", folder=work)
    return work / "match.html"


def annotation(number: int, block: Mapping[str, Any]) -> dict[str, Any]:
    """A block as OmniDocBench.json has it."""
    left, top, right, bottom = (SCALE * edge for edge in block["box"])
    category = block["category"]
    content = {"text": block["text"]}
    if category == "table":
        content = {"html": "<table>" + block["html"].partition(">")[2]}
    elif "latex" in block:
        content = {"latex": block["latex"]}
    order = int(block["order"]) if "order" in block else None
    poly = [left, top, right, top, right, bottom, left, bottom]
    return {"category_type": category, "poly": poly, "order": order, "anno_id": number, "ignore": False, **content}


if __name__ == "__main__":
    main(sys.argv[1:])

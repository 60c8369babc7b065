"""Generated pages as a folder of one's own (docs/own-data.md): pages, clean PDF files, references and settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from loupe.errors import UsageError, word
from loupe.features.synth.choosing import GENERATOR, Choice, chosen_pages, sample_of
from loupe.features.synth.page import MM_PER_POINT, PITCH, PIXELS_PER_POINT, Truth
from loupe.features.synth.typeset.drawing import clean_pdf
from loupe.files.folder import Folder
from loupe.files.scratch import scratch_folder
from loupe.files.whole_folder import whole_folder
from loupe.inference.drawer import Drawer
from loupe.types import PdfPage, Sample

PAGES, CLEAN = "pages", "clean"
#: A present text of a fact may have this many characters wrong, of so many.
_SHOWN, _WRONG = 60, 12


def new_folder(path: Path) -> Folder:
    """The folder, which is not there yet or empty; nothing is made. Raises UsageError if something lies in it."""
    folder = Folder(path)
    if folder.names():
        hint = f"run: loupe synth {word(f'{path}-2' if path.name else 'pages')}"
        raise UsageError(f"{path}: something lies there already; nothing was changed", hint=hint)
    return folder


def write_clean(folder: Folder, sample: Sample) -> None:
    """The page as it was typeset; degraded pages have that of their base page."""
    truth: Truth = sample.truth
    if "damage" not in truth.recipe:
        (folder / CLEAN).create()
        (folder / CLEAN).write(f"{sample.id}.pdf", clean_pdf(truth.recipe), sync=False)


def write_records(folder: Folder, samples: Sequence[Sample], choice: Choice) -> None:
    """`samples.jsonl`, `facts.jsonl`, `boxes.jsonl` and `loupe.toml`."""
    tests = [test for sample in samples for test in _tests(sample)]
    folder.write("samples.jsonl", _lines(_row(sample, any(_tests(sample))) for sample in samples))
    if tests:
        folder.write("facts.jsonl", _lines(iter(tests)))
    folder.write("boxes.jsonl", _lines({"id": sample.id, "boxes": boxes(sample)} for sample in samples))
    title = f"Generated pages, seed {choice.seed}"
    version = f"synth-{GENERATOR}-seed-{choice.seed}"
    folder.write("loupe.toml", f'[benchmark]\ntitle = "{title}"\nversion = "{version}"\ntask = "text"\n'.encode())


def boxes(sample: Sample) -> list[dict[str, Any]]:
    """The boxes of the text on the clean page: left, top, right, bottom in pixels, in reading order."""
    layout = sample.truth.recipe.get("layout", {"pieces": []})
    found = []
    for piece in layout["pieces"]:
        if "lines" in piece and "turn" not in piece:
            size = piece.get("size", layout["size"])
            height = len(piece["lines"]) * size * PITCH * MM_PER_POINT
            edges = (piece["x"], piece["y"], piece["x"] + piece["width"], piece["y"] + height)
            lines = ["".join(part for part, _ in line) if isinstance(line, list) else line for line in piece["lines"]]
            pixels = [round(edge / MM_PER_POINT * PIXELS_PER_POINT) for edge in edges]
            found.append({"box": pixels, "text": "\n".join(lines)})
    return found


def _row(sample: Sample, has_facts: bool) -> dict[str, Any]:
    truth: Truth = sample.truth
    task, reference = "text", truth.text
    if has_facts:
        task = "facts"
    elif truth.html:
        task, reference = "table", truth.html
    elif truth.latex:
        task, reference = "formula", truth.latex
    return {
        "id": sample.id,
        "image": _image(sample) + ("#page=1" if _image(sample).endswith(".pdf") else ""),
        "task": task,
        "reference": reference,
        "tags": dict(sample.tags),
        "group": sample.group,
    }


def _image(sample: Sample) -> str:
    (image,) = sample.images
    return f"{PAGES}/{(image.path if isinstance(image, PdfPage) else Path(str(image))).name}"


def _tests(sample: Sample) -> Iterator[dict[str, Any]]:
    """Exact values must be there, what cannot be read must not; of what must be read, the beginning of each line."""
    truth: Truth = sample.truth
    tests = [*(("present", field.value) for field in truth.fields), *_trap_tests(truth)]
    for number, (kind, text) in enumerate(tests, 1):
        loose = {"max_diffs": _WRONG} if kind == "present" and not truth.fields else {}
        about = {"pdf": _image(sample), "page": 1, "id": f"{sample.id}-{number}", "type": kind, "text": text}
        yield {**about, **loose, "checked": "verified"}


def _trap_tests(truth: Truth) -> Iterator[tuple[str, str]]:
    """Only of traps in which something must not be read; the text of the others is compared as a whole."""
    unread = [fact.text for fact in truth.facts if fact.kind == "absent" or (fact.kind == "at most" and not fact.count)]
    told = any(fact.kind == "at most" for fact in truth.facts)
    if unread or told:
        yield from (("absent", text) for text in unread)
        wanted = next(fact.text for fact in truth.facts if fact.kind == "read")
        yield from (("present", line[:_SHOWN]) for line in wanted.split("\n") if len(line) > _SHOWN // 2)


def _lines(rows: Iterator[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


#: Pages from one line of progress to the next.
_STEP = 50


async def write_generated(path: Path, choice: Choice, say: Callable[[str], None]) -> int:
    """Write the folder, whole or not at all; returns how many pages it has.

    Raises UsageError if something lies there, if another process writes it, or for a page that cannot be typeset.
    """
    samples = []
    # Pages are drawn by other processes, which know only a path: the folder itself is held open here.
    with whole_folder(new_folder(path)) as folder, scratch_folder("loupe-synth-") as drawn:
        made = (sample_of(page, choice, drawn, named=True) for page in chosen_pages(choice))
        async with Drawer("synth") as drawer:
            async for sample in drawer.drawn(made):
                name = Path(_image(sample)).name
                (folder / PAGES).write(name, Folder(drawn).read(name), sync=False)
                Folder(drawn).remove(name)
                write_clean(folder, sample)
                samples.append(sample)
                if len(samples) % _STEP == 0:
                    say(f"{len(samples):,} pages")
        write_records(folder, samples, choice)
    return len(samples)

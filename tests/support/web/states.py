"""Runs and folders in every state that people see on pages, made without asking an engine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

import loupe
from loupe.data import trust
from loupe.runs.folder import RunFolder
from loupe.types import Estimate, Prediction
from tests.report.test_report_match import ANSWERS, PAGES
from tests.support.report_runs import Toy, draw_page, misread, toy_pages

LONG = "organisation-with-a-long-name/vision-language-model-7b-instruct-2026-11-quantised-awq"
HEBREW = "מנוע-קריאה/גרסה-שנייה"
#: What a state adds to, rather than replaces.
MERGED = {"measures", "directions"}
BEGINNING = "archive-of-the-harbour-authority/volume-0012/correspondence-with-the-ministry-of-fisheries/letter-"


def answers(toy: Toy, every: int, *, seconds: float = 0.4) -> dict[str, Prediction]:
    """Answers with an error at every so many characters."""
    return {
        each.id: Prediction(sample=each.id, text=misread(each.truth, every), seconds=seconds + place % 5 / 9)
        for place, each in enumerate(toy.samples)
    }


def changed(path: Path, **fields: Any) -> None:
    """Put other fields into the result of a run."""
    folder = RunFolder.open(path)
    result = folder.stored_result()
    assert result is not None
    known = {name: {**value, **getattr(result, name)} if name in MERGED else value for name, value in fields.items()}
    folder.write_result(msgspec.structs.replace(result, **known))


def toys(root: Path) -> dict[str, Toy]:
    """A benchmark for each state of leaderboards and samples."""
    made = {
        name: toy_pages(root / name, 10, pages=2, characters=160, size=(310, 438))
        for name in ("winner", "tie", "one", "failures", "headless", "gone", "many")
    }
    for name in ("names", "hebrew"):
        begins = BEGINNING if name == "names" else "ארכיון/מכתב-"
        plain = toy_pages(root / name, 6, pages=2, characters=160, size=(310, 438))
        samples = [replace(each, id=f"{begins}{place:03}") for place, each in enumerate(plain.samples)]
        made[name] = Toy(root=root / name, samples=samples)
    for name, toy in made.items():
        toy.ident = f"toy_{name}"
        file = toy.root / "toy.py"
        file.write_text(file.read_text(encoding="utf-8").replace("Toy pages", f"State {name}"), encoding="utf-8")
        trust.remember(file)
    _winner(made["winner"])
    for engine in ("first", "second"):
        made["tie"].run(engine, answers(made["tie"], 31))
    made["one"].run("only", {each.id: each.truth for each in made["one"].samples})
    _failures(made["failures"])
    _headless(made["headless"])
    for engine in ("first", "second"):
        made["gone"].run(engine, answers(made["gone"], 9 if engine == "first" else 31))
    for number in range(7):
        made["many"].run(f"vendor/engine-{number}-of-several", answers(made["many"], 5 + 4 * number, seconds=number))
    for engine, every in ((f"{LONG}-first", 31), (f"{LONG}-second", 4)):
        made["names"].run(engine, answers(made["names"], every))
    made["hebrew"].run(HEBREW, {each.id: "هذا كتاب المرفأ " * 9 for each in made["hebrew"].samples})
    made["hebrew"].run("latin", answers(made["hebrew"], 7))
    return made


def rung(
    name: str, rank: float, value: float | None, samples: list[str], *, half: float | None = 0.05
) -> dict[str, Any]:
    ends = None if value is None or half is None else (max(0.0, value - half), min(1.0, value + half))
    low, high = ends or (None, None)
    return {"rung": name, "rank": rank, "value": value, "low": low, "high": high, "bases": 4, "samples": samples}


def ladders(pages: list[str], *, worse: float = 0.0) -> list[dict[str, Any]]:
    """A degradation, print of several sizes, and texts without meaning, as results hold them."""
    blur = [rung(str(step), step, 0.99 - (0.1 + worse) * step, [pages[step]]) for step in range(4)]
    sizes = [rung(f"{size:g}", size, worse + 1 / size**2, pages[:2]) for size in (24.0, 12.0, 8.0, 5.0)]
    words = [
        rung(name, at, 0.02 * at, [pages[at]]) for at, name in enumerate(("natural", "shuffled", "random letters"))
    ]
    crossing = {"where": "within", "value": 7.5, "low": None, "high": 8.25, "easiest": 24.0, "hardest": 5.0, "n": 4}
    never = {"where": "never", "value": None, "low": None, "high": None, "easiest": 0.0, "hardest": 3.0, "n": 4}
    area = {"value": 0.84, "low": 0.8, "high": 0.88, "n": 4}
    return [
        {"track": "degrade", "kind": "bleed_through", "measure": "accuracy", "axis": "severity", "points": blur,
         "summary": {"area": area, "half_loss": never}},
        {"track": "legibility", "kind": "size", "measure": "cer", "axis": "x-height in px", "points": sizes,
         "summary": {"limit": crossing}},
        {"track": "prior", "kind": "", "measure": "cer", "axis": "rung", "points": words,
         "summary": {"reliance": [area, {"value": 0.04, "low": 0.01, "high": 0.07, "n": 4}]}},
    ]  # fmt: skip


def _winner(toy: Toy) -> None:
    pages = [each.id for each in toy.samples]
    for engine, every in (("good", 61), ("poor", 3)):
        climbed = {"ladders": ladders(pages, worse=0.0 if engine == "good" else 0.1)}
        path = toy.run(engine, answers(toy, every, seconds=0.4 if engine == "good" else 2.0))
        speed = {"seconds_per_page": 0.4 if engine == "good" else 2.2, "cost_per_page": every / 9e4}
        changed(path, figures=climbed, speed=speed)


def _failures(toy: Toy) -> None:
    some: dict[str, Prediction | str] = {**answers(toy, 9)}
    for place, outcome in enumerate(("timeout", "error", "rejected", "truncated", "repeated", "empty")):
        ident = toy.samples[place].id
        text = "" if outcome in ("timeout", "error", "rejected", "empty") else "the the the"
        error = f"HTTP 500 from http://gateway.example/v1/chat/completions: {'no room left ' * 9}" if place < 3 else ""
        some[ident] = Prediction(sample=ident, outcome=outcome, text=text, error=error, seconds=1.0)  # type: ignore[arg-type]
    toy.run("some", some)
    lost = {each.id: Prediction(sample=each.id, outcome="error", error="connection refused") for each in toy.samples}
    toy.run("none", lost)
    toy.run("unscored", answers(toy, 9), scored=False)


def _headless(toy: Toy) -> None:
    """The headline could not be computed on this machine; another measure was."""
    file, headline = toy.root / "toy.py", 'Measure(name="cdm", title="CDM"), '
    file.write_text(file.read_text(encoding="utf-8").replace("measures=(", f"measures=({headline}"), encoding="utf-8")
    trust.remember(file)

    why = {"cdm": "TeX is not installed: loupe setup tex"}
    for engine, every in (("first", 9), ("second", 31)):
        path = toy.run(engine, answers(toy, every))
        changed(
            path, headline="cdm", measures={"cdm": Estimate(value=None)}, directions={"cdm": True}, not_computed=why
        )


def own(root: Path) -> list[Path]:
    """Runs on folders of one's own, one for each task that has tables of its own: fields and classes."""
    truth = {
        "seller": "Autohaus Hoffmann GmbH",
        "day": "5 March 2024",
        "total": "1.234,50 EUR",
        "a_field_with_a_long_name": "",
    }
    sets: dict[str, tuple[str, list[Any], dict[str, list[str]]]] = {
        "fields": (
            '[benchmark]\ntask = "fields"\n[fields]\nseller = "company"\nday = "date"\ntotal = "amount"\n'
            'a_field_with_a_long_name = "text"\n',
            [truth] * 4,
            {
                "good": [json.dumps(truth)] * 4,
                "poor": [json.dumps({**truth, "seller": "<b>Somebody</b>", "total": ""})] * 3 + ["no JSON"],
            },
        ),
        "labels": (
            '[benchmark]\ntask = "class"\nlabels = ["invoice", "questionnaire", "bank statement", "other"]\n',
            ["invoice", "questionnaire", "bank statement", "other"],
            {"good": ["invoice", "questionnaire", "bank statement", "other"], "poor": ["invoice"] * 4},
        ),
    }
    paths = []
    for name, (settings, references, engines) in sets.items():
        folder = root / name
        folder.mkdir()
        (folder / "loupe.toml").write_text(settings, encoding="utf-8")
        rows = [{"id": f"{place}", "text": "x", "reference": one} for place, one in enumerate(references)]
        (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        for engine, texts in engines.items():
            given = {str(place): text for place, text in enumerate(texts)}
            paths.append(loupe.score(str(folder), given, name=engine, runs=root / "runs").path)
    return paths


def matched(root: Path) -> list[Path]:
    """Pages of OmniDocBench, whose blocks are matched with those of the answers."""
    (root / "data").mkdir(parents=True)
    (root / "data" / "OmniDocBench.json").write_text(json.dumps(PAGES), encoding="utf-8")
    for page in PAGES:
        texts = (str(each.get("text", "")) for each in page["layout_dets"])
        draw_page(root / "data" / "images" / page["page_info"]["image_path"], " ".join(texts))
    given = {name: text[:9_000] for name, text in ANSWERS.items()}
    options = {"data": str(root / "data"), "runs": root / "runs"}
    return [
        loupe.score("omnidocbench@1.5", answered, name=name, **options).path  # type: ignore[arg-type]
        for name, answered in (("careless", given), ("other", {**given, "harbour": ""}))
    ]


def drafted(root: Path, kind: str) -> Path:
    """A folder to review, with drafts of two engines that differ, long names, and a name from right to left."""
    root.mkdir()
    fields = 'task = "fields"\n[fields]\nday = "date"\ntotal = "amount"\na_field_with_a_long_name = "company"\n'
    settings = {
        "fields": fields,
        "class": 'task = "class"\nlabels = ["invoice", "bank statement"]\n',
        "table": 'task = "table"\n',
    }
    (root / "loupe.toml").write_text("[benchmark]\n" + settings[kind], encoding="utf-8")
    table = "<table><tr><th>Item</th><th>Price</th></tr><tr><td>{}</td><td>1</td></tr></table>"
    known: dict[str, tuple[Any, Any]] = {
        "fields": ({"day": "11.05.2024", "total": "1.234,50"}, {"day": "11.05.2024", "total": "1.284,50"}),
        "class": ("invoice", "bank statement"),
        "table": (table.format("Fish"), table.format("Chips")),
    }
    one, two = known[kind]
    rows = []
    for place, ident in enumerate([f"{BEGINNING}1", f"{BEGINNING}2", "short", HEBREW, "done"]):
        truth: dict[str, Any] = {"status": "draft", "engines": [LONG, HEBREW], "drafts": {LONG: one, HEBREW: two}}
        truth |= {"differs": ["total" if kind == "fields" else "reference"]}
        row = {"id": ident, "image": "page.png", "reference": one, "truth": truth}
        rows.append(row if place < 4 else {"id": ident, "image": "page.png", "reference": one})
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (root / "samples.jsonl").write_text("".join(lines), encoding="utf-8")
    draw_page(root / "page.png", "A page of words. " * 40, size=(310, 438))
    return root

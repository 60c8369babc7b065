"""Data sets of our own in the prepared form, of any size, with answers that are wrong in the ways real ones are.

Used by tests (a handful of samples) and by perf/scoring.py (as many as the real sets have). All text is invented here.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_SYLLABLES = [
    "ba",
    "cor",
    "den",
    "el",
    "fi",
    "gra",
    "hu",
    "in",
    "jo",
    "ka",
    "lum",
    "mer",
    "no",
    "or",
    "pel",
    "qui",
    "ra",
]
_SUBSETS = ("spe", "cpe", "sce", "hwe")
_CATEGORIES = (
    "Regular Text Recognition",
    "Scene Text-centric VQA",
    "Doc-oriented VQA",
    "Key Information Extraction",
    "Handwritten Mathematical Expression Recognition",
)
_KIE_FIELDS = (
    "date",
    "doc_no_receipt_no",
    "seller_address",
    "seller_gst_id",
    "seller_name",
    "seller_phone",
    "total_amount",
    "total_tax",
)
_FORM_FIELDS = ("name_of_deceased", "deceased_age", "birth_place", "father_name", "mother_name", "State file #")


@dataclass(frozen=True, kw_only=True)
class Item:
    """One sample with an answer to it."""

    truth: Any
    answer: str
    metadata: dict[str, Any] = field(default_factory=dict)


def write_prepared(ident: str, root: Path, count: int, *, seed: int = 7, images: bool = True) -> dict[str, str]:
    """Write `count` samples of a benchmark in the prepared form, or its own if it has none; answers by sample id."""
    if ident == "olmocr_bench":
        return _write_facts(root, count, seed)
    (root / "images").mkdir(parents=True)
    dice = random.Random(f"{ident} {seed}")
    answers = {}
    with (root / "metadata.jsonl").open("w", encoding="utf-8") as file:
        for index in range(count):
            item = MAKERS[ident](dice, index)
            name = f"{ident}-{index:05d}"
            answers[name] = item.answer
            row = {"idx": index, "sample_id": name, "ground_truth": item.truth, "metadata": item.metadata}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            if images:
                _write_image(root / "images" / f"{index:05d}.jpg", shade=index % 256)
    return answers


def _write_facts(root: Path, count: int, seed: int) -> dict[str, str]:
    """Test files and (empty) documents as olmOCR-Bench has them."""
    (root / "pdfs").mkdir(parents=True)
    dice = random.Random(f"olmocr_bench {seed}")
    answers, rows = {}, []
    for index in range(count):
        item = _facts(dice, index)
        (root / "pdfs" / f"{index:05d}.pdf").touch()
        answers[f"{index:05d}_pg1_repeat1"] = item.answer
        common = {"pdf": f"{index:05d}.pdf", "page": 1}
        rows += [{**common, "id": f"{index}-{number}", **fact} for number, fact in enumerate(item.truth)]
    (root / "own.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return answers


def _write_image(path: Path, *, shade: int) -> None:
    from PIL import Image

    Image.new("L", (24, 12), shade).save(path)


def word(dice: random.Random) -> str:
    """An invented word."""
    return "".join(dice.choice(_SYLLABLES) for _ in range(dice.randint(1, 4)))


def words(dice: random.Random, count: int) -> str:
    """Invented words with blanks between them."""
    return " ".join(word(dice) for _ in range(count))


def misread(text: str, dice: random.Random, *, rate: float = 0.02) -> str:
    """The text with characters replaced, dropped and doubled; half of all texts stay as they are."""
    if dice.random() < 0.5:
        return text
    choices = (lambda char: "x", lambda char: "", lambda char: char * 2)
    return "".join(dice.choice(choices)(char) if dice.random() < rate and char.isalnum() else char for char in text)


def _question(dice: random.Random, index: int) -> Item:
    category = _CATEGORIES[index % len(_CATEGORIES)]
    math = category.startswith("Handwritten Math")
    wanted = _formula_text(dice, 6) if math else words(dice, dice.randint(1, 4))
    said = misread(wanted, dice, rate=0.1)
    facts = {"dataset": "HME100k" if math else "own", "category": category, "question": f"What is written at {index}?"}
    return Item(truth=[wanted], answer=said if math else f"It reads {said}.", metadata=facts)


def _question_of_thirty_types(dice: random.Random, index: int) -> Item:
    """Some of the types of OCRBench v2: those that need no WordNet."""
    text, box = words(dice, 3), [10, 20, 300, 400]
    hull = [[10, 20, 300, 20, 300, 400, 10, 400]]
    kinds: tuple[tuple[dict[str, Any], str], ...] = (
        ({"type": "text recognition en", "answers": [text]}, misread(text, dice, rate=0.1)),
        ({"type": "text counting en", "answers": ["12"], "eval": "regression"}, "There are 11."),
        ({"type": "text grounding en", "answers": box}, "(10, 25, 310, 390)"),
        ({"type": "text spotting en", "answers": [], "bbox": hull, "content": [text]}, f"[(10,20,300,400,{text})]"),
        ({"type": "key information extraction en", "answers": [{"name": [text]}]}, json.dumps({"name": text})),
        ({"type": "document parsing cn", "answers": [f"# {text}\n{text}"]}, f"# {text}\n\n{text}"),
        ({"type": "chart parsing en", "answers": [{"a": {"b": text}}]}, f"{{'a': {{'b': '{text}'}}}}"),
        ({"type": "cognition VQA cn", "answers": [text]}, text),
    )
    truth, answer = kinds[index % len(kinds)]
    metadata = {"type": truth.pop("type"), "dataset": "own"}
    return Item(truth={"question": f"What is written at {index}?", **truth}, answer=answer, metadata=metadata)


def _short_answer(dice: random.Random, index: int) -> Item:
    """A question with a word, a number, or what ten people said as its answer; two for each image."""
    wanted = [words(dice, dice.randint(1, 3)), f"{dice.uniform(1, 2_000):.2f}"][index % 2]
    said = [
        misread(wanted, dice, rate=0.1),
        f"The answer is {wanted}.",
        f"{float(wanted) * 1.02:,.2f}" if index % 2 else wanted,
    ]
    truth = {"question": f"What is written at {index}?", "answers": [wanted] * dice.choice([1, 10])}
    metadata = {"group": f"image-{index // 2}", "tags": {"type": dice.choice(["human_test", "augmented_test"])}}
    return Item(truth=truth, answer=dice.choice(said), metadata=metadata)


#: Tracks of CC-OCR, and where their subsets begin and end.
_TRACKS = (("multi_scene_ocr", 0, 13), ("multi_lan_ocr", 13, 23), ("doc_parsing", 23, 33), ("kie", 33, 38))


def _of_four_tracks(dice: random.Random, index: int) -> Item:
    """A text, or a record, of each track of CC-OCR in turn."""
    from loupe.benchmarks.cc_ocr.data import SUBSETS

    track, first, end = _TRACKS[index % len(_TRACKS)]
    subset = SUBSETS[first + index // len(_TRACKS) % (end - first)]
    op = subset.split("_")[0] if track == "doc_parsing" else subset
    text: Any = words(dice, dice.randint(4, 60))
    if op == "table":
        text = f"<table>{''.join(table_html(dice, dice.randint(3, 12), dice.randint(2, 6)))}</table>"
    if track == "kie":
        text = {
            "name": words(dice, 3),
            "menu": [{"nm": word(dice), "price": "1.50"} for _ in range(dice.randint(1, 5))],
        }
    said = json.dumps(text) if track == "kie" else text
    said = (
        _CELL_TEXT.sub(lambda cell: misread(cell[0], dice), said) if op == "table" else misread(said, dice, rate=0.05)
    )
    tags = {"track": track, "subset": subset, "op": op}
    return Item(truth=text, answer=said, metadata={"prompt": "Read it.", "tags": tags})


def table_html(dice: random.Random, rows: int, columns: int) -> list[str]:
    """The rows of a table as PubTabNet has them: a head with spans in some, numbers and words below."""
    head = "".join(f"<td><b>{word(dice)}</b></td>" for _ in range(columns))
    lines = [f"<tr>{head}</tr>"]
    if columns > 2 and dice.random() < 0.4:
        lines.insert(0, f'<tr><td colspan="2">{words(dice, 2)}</td>' + "<td></td>" * (columns - 2) + "</tr>")
    for _ in range(rows - 1):
        cells = [words(dice, dice.randint(1, 3)), *(f"{dice.uniform(0, 999):.2f}" for _ in range(columns - 1))]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return lines


_CELL_TEXT = re.compile("(?<=>)[^<]+")


def _misread_rows(lines: list[str], dice: random.Random) -> list[str]:
    """Rows dropped and doubled now and then, and cell texts misread."""
    kept = []
    for line in lines:
        chance = dice.random()
        copies = 0 if chance < 0.02 else 2 if chance > 0.99 else 1
        kept += [_CELL_TEXT.sub(lambda text: misread(text[0], dice, rate=0.03), line)] * copies
    return kept


def _table(dice: random.Random, index: int) -> Item:
    lines = table_html(dice, dice.randint(3, 24), dice.randint(2, 9))
    body = "".join(_misread_rows(lines[1:], dice))
    truth = f"<table><thead>{lines[0]}</thead><tbody>{''.join(lines[1:])}</tbody></table>"
    return Item(truth=truth, answer=f"<table><thead>{lines[0]}</thead><tbody>{body}</tbody></table>")


def _formula_text(dice: random.Random, parts: int) -> str:
    kinds: tuple[Callable[[], str], ...] = (
        lambda: rf"\frac {{ {dice.choice('abcxyz')} }} {{ {dice.randint(1, 99)} }}",
        lambda: f"{dice.choice('uvwxyz')} ^ {{ {dice.randint(2, 9)} }}",
        lambda: rf"\sum _ {{ i = 1 }} ^ {{ n }} {dice.choice('abc')} _ {{ i }}",
        lambda: rf"\sqrt {{ {dice.choice('pqr')} + {dice.randint(1, 9)} }}",
        lambda: dice.choice(["+", "-", "=", r"\alpha", r"\cdot", r"\leq"]),
    )
    return " ".join(dice.choice(kinds)() for _ in range(parts))


def _formula(dice: random.Random, index: int) -> Item:
    truth = _formula_text(dice, dice.randint(2, 14))
    said = misread(truth, dice)
    return Item(truth=truth, answer=f"$${said}$$" if index % 9 == 0 else said, metadata={"subset": _SUBSETS[index % 4]})


def _document(dice: random.Random, index: int) -> Item:
    truth = {name: "" if dice.random() < 0.2 else words(dice, dice.randint(1, 5)) for name in _KIE_FIELDS}
    said = json.dumps({name: misread(value, dice, rate=0.06) for name, value in truth.items()}, indent=1)
    return Item(truth=truth, answer=f"```json\n{said}\n```" if index % 3 == 0 else said)


def _form(dice: random.Random, index: int) -> Item:
    truth = {name: words(dice, 2) for name in _FORM_FIELDS}
    return Item(truth=truth, answer=json.dumps({name: misread(value, dice) for name, value in truth.items()}))


def _page(dice: random.Random, index: int) -> Item:
    elements: list[dict[str, Any]] = [{"category": "Heading1", "content": {"text": words(dice, 5)}}]
    elements += [{"category": "Paragraph", "content": {"text": words(dice, dice.randint(20, 120))}} for _ in range(8)]
    said = [f"# {elements[0]['content']['text']}"]
    said += [misread(each["content"]["text"], dice) for each in elements[1:]]
    if index % 3 == 0:
        lines = table_html(dice, dice.randint(4, 20), dice.randint(3, 7))
        text = words(dice, 3)
        elements.insert(5, {"category": "Table", "content": {"text": text, "html": "".join(lines)}})
        said.insert(5, f"<table>{''.join(_misread_rows(lines, dice))}</table>")
    shown = [each["content"].get("html", each["content"]["text"]) for each in elements]
    return Item(truth={"elements": elements, "markdown": "\n\n".join(shown)}, answer="\n\n".join(said))


def _markdown_page(dice: random.Random, index: int) -> Item:
    """A page of OmniDocBench: a title, paragraphs, a formula, on some pages a table; and its Markdown."""
    texts = [words(dice, 5), *(words(dice, dice.randint(20, 90)) for _ in range(6))]
    blocks = [{"category_type": "text_block" if number else "title", "text": text} for number, text in enumerate(texts)]
    said = [misread(text, dice) for text in texts]
    formula = _formula_text(dice, 6)
    blocks.insert(3, {"category_type": "equation_isolated", "latex": f"$${formula}$$"})
    said.insert(3, f"$$ {misread(formula, dice)} $$")
    if index % 3 == 0:
        lines = table_html(dice, dice.randint(4, 12), dice.randint(3, 6))
        blocks.append({"category_type": "table", "html": f"<table>{''.join(lines)}</table>", "latex": ""})
        said.append(f"<table>{''.join(_misread_rows(lines, dice))}</table>")
    numbered = [{**block, "order": order, "anno_id": order, "attribute": {}} for order, block in enumerate(blocks, 1)]
    facts = {"data_source": dice.choice(["book", "note"]), "language": "english", "special_issue": ["None"]}
    info = {"image_path": f"omnidocbench-{index:05d}.jpg", "page_attribute": facts}
    truth = {"layout_dets": numbered, "page_info": info, "extra": {"relation": []}}
    return Item(truth=truth, answer="\n\n".join(said))


def _multilingual_page(dice: random.Random, index: int) -> Item:
    """The same as MDPBench has it: one attribute, and vowel signs that the official rules do not compare."""
    page = _markdown_page(dice, index)
    blocks = [
        *page.truth["layout_dets"],
        {"category_type": "text_block", "order": 99, "anno_id": 99, "text": "हिन्दी में"},
    ]
    info = {"image_path": f"mdpbench-{index:05d}.jpg", "page_attribute": {"language": "Hindi"}}
    truth = {**page.truth, "layout_dets": blocks, "page_info": info}
    return Item(truth=truth, answer=f"{page.answer}\n\nहनद म")


def _facts(dice: random.Random, index: int) -> Item:
    """A page with a table, and one test of each kind but math, some with a difference allowed."""
    texts = [words(dice, 60) for _ in range(4)]
    cells = [[word(dice) for _ in range(4)] for _ in range(6)]
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in cells)
    page = "\n\n".join([f"# {texts[0][:30]}", *texts, f"**{texts[1][:20]}** [^1]", f"<table>{rows}</table>"])
    allowed = {"max_diffs": index % 3}
    facts = [
        {"type": "present", "text": texts[0][20:70], **allowed},
        {"type": "absent", "text": words(dice, 6), **allowed, "case_sensitive": False},
        {"type": "order", "before": texts[1][:40], "after": texts[3][:40], **allowed},
        {"type": "table", "cell": cells[2][2], "up": cells[1][2], "left_heading": cells[2][0], **allowed},
        {"type": "format", "format": dice.choice(["heading", "bold", "italic"]), "text": texts[1][:20]},
        {"type": "footnote", "marker": "1", "appears_before_marker": texts[1][:20], **allowed},
        {"type": "baseline"},
    ]
    return Item(truth=facts, answer=misread(page, dice))


def _graded_page(dice: random.Random, index: int) -> Item:
    """A page with a table, a formula and blocks, and five or six tests of it, as the published set has on average."""
    texts = [words(dice, 60) for _ in range(6)]
    head = [words(dice, 8) for _ in range(5)]
    cells = [[f"{word(dice)} {dice.randint(1, 9999)}" for _ in range(5)] for _ in range(8 if index % 2 else 2)]
    kinds = ["heading", "text", "text", "table", "footnote"]
    blocks = [
        {"label": kind, "bbox": [0.1, 0.15 * number + 0.05, 0.9, 0.15 * number + 0.15]}
        for number, kind in enumerate(kinds)
    ]
    parts = [f"<h1>{texts[0][:30]}</h1>", *(f"<p>{text}</p>" for text in texts), "<p>Let $x_{1}^{2}+y$ be 1,234.5.</p>"]
    rows = "".join(_row("td", row) for row in cells)
    parts.append(f"<table>{_row('th', head)}{rows}</table>")
    allowed = index % 3
    column = dice.randrange(1, 5)
    place = {"text": "t", "max_diffs": 0, "place": [blocks[index % 5]["bbox"]]}
    places = {"before": 2, "after": 4}
    order = {name: {"text": texts[number][:30], "max_diffs": allowed} for name, number in places.items()}
    asked: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("present", {"content": {"text": texts[1][10:60], "max_diffs": allowed}}, {}),
        ("table_cell", _cell_arguments(cells, head, column, allowed), {}),
        ("layout_kind", {"content": place}, {"kind": kinds[index % 5]}),
        ("order", order, {}),
        ("present", {"content": {"number": "1,234.5"}}, {}),
    ]
    asked += [("table_cell", _cell_arguments(cells, head, 1, 0), {})] if index % 2 else []
    tests = [
        {
            "id": f"{index}-{number}",
            "test_type": kind,
            "output_type": "blocks" if kind == "layout_kind" else "html",
            "derivation": "authored",
            "tags": ["Latn", "eng", "table" if kind == "table_cell" else "list"],
            "args": args,
            "settings": settings,
        }
        for number, (kind, args, settings) in enumerate(asked)
    ]
    if index % 7 == 0:
        blocks[0]["label"] = "caption"
    answer = json.dumps({"html": misread("\n".join(parts), dice, rate=0.01), "blocks": blocks})
    return Item(truth={"tests": tests}, answer=answer, metadata={"group": f"d{index // 2}", "tags": {"suite": "own"}})


def _row(tag: str, texts: list[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in texts)}</tr>"


def _cell_arguments(cells: list[list[str]], head: list[str], column: int, allowed: int) -> dict[str, Any]:
    arguments: dict[str, Any] = {"cell": cells[1][column], "up": cells[0][column], "left": cells[1][column - 1]}
    found: dict[str, Any] = {name: {"text": text, "max_diffs": allowed} for name, text in arguments.items()}
    return found | {"headings": [{"text": head[column], "max_diffs": allowed}]}


def _dense_page(dice: random.Random, index: int) -> Item:
    truth = words(dice, dice.randint(200, 500))
    facts = {"language": "zh" if index % 2 else "en"}
    return Item(truth={"text": truth, "tokens": len(truth) // 4}, answer=misread(truth, dice), metadata=facts)


def _line(dice: random.Random, index: int) -> Item:
    truth = words(dice, dice.randint(4, 11))
    return Item(truth=truth, answer=misread(truth, dice))


#: Benchmark → how one of its samples is made.
MAKERS: dict[str, Callable[[random.Random, int], Item]] = {
    "ocrbench": _question,
    "ocrbench_v2": _question_of_thirty_types,
    **dict.fromkeys(("docvqa", "infovqa", "chartqa", "textvqa"), _short_answer),
    "cc_ocr": _of_four_tracks,
    "pubtabnet": _table,
    "teds_test": _table,
    "unimer_test": _formula,
    "nanonets_kie": _document,
    "handwritten_forms": _form,
    "omnidocbench": _markdown_page,
    "mdpbench": _multilingual_page,
    "dp_bench": _page,
    "iam_lines": _line,
    "fox": _dense_page,
    "olmocr_bench": _facts,
    "omni_parse_bench": _graded_page,
}

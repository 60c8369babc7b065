"""Ground truth of the sample pages: their words in reading order, made from content.toml and nothing else."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

WORDS = tomllib.loads((Path(__file__).parent / "content.toml").read_text(encoding="utf-8"))


def prose() -> str:
    """A page of a book."""
    page = WORDS["prose"]
    return lines([page["title"], page["byline"], *page["paragraphs"], page["folio"]])


def two_columns() -> str:
    """A newsletter: head over both columns, then the left column, then the right one."""
    page = WORDS["two_columns"]
    articles = [text for article in page["articles"] for text in (article["head"], *article["paragraphs"])]
    return lines([page["title"], page["subtitle"], *articles])


def small_print() -> str:
    """Numbered clauses."""
    page = WORDS["small_print"]
    clauses = [f"{number}. {head}. {text}" for number, (head, text) in enumerate(page["clauses"], 1)]
    return lines([page["title"], page["edition"], *clauses])


def receipt() -> str:
    """A till receipt, line by line."""
    page = WORDS["receipt"]
    return lines(
        [
            page["shop"],
            *page["address"],
            f"Tel. {page['phone']}",
            f"Receipt {page['number']} Served by {page['served_by']}",
            f"{page['date']} {page['time']}",
            *(" ".join(item) for item in page["items"]),
            f"Subtotal {page['subtotal']}",
            f"Tax {page['tax_rate']} {page['tax']}",
            f"TOTAL {page['total']}",
            f"Cash {page['paid']}",
            f"Change {page['change']}",
            page["thanks"],
        ]
    )


def receipt_fields() -> dict[str, str]:
    """What one wants to know from a receipt."""
    page = WORDS["receipt"]
    return {"shop": page["shop"], "receipt_number": page["number"]} | {
        key: page[key] for key in ("date", "time", "subtotal", "tax", "total", "change")
    }


def form() -> str:
    """A form from top to bottom: each label, then what was filled in."""
    page = WORDS["form"]
    choice, signed, office = page["choice"], page["signed"], page["office_use"]
    return lines(
        [
            f"{page['office']} {page['code']}",
            page["title"],
            page["hint"],
            *(text for row in page["rows"] for text in (row["label"], row["value"])),
            " ".join([choice["label"], *choice["options"]]),
            page["declaration"],
            signed["label"],
            signed["value"],
            page["note"],
            f"{office['label']} {office['value']}",
        ]
    )


def form_fields() -> dict[str, str]:
    """What was filled in, by field."""
    page = WORDS["form"]
    filled = [*page["rows"], page["office_use"]]
    return {row["name"]: row["value"] for row in filled} | {page["choice"]["name"]: page["choice"]["chosen"]}


def table_page() -> str:
    """A report page; its table row by row."""
    page = WORDS["table"]
    rows = [page["head"], page["subhead"], *page["rows"]]
    return lines([page["title"], page["lead"], page["caption"], *(" ".join(row) for row in rows), page["closing"]])


def table_html() -> str:
    """The table of that page."""
    page = WORDS["table"]
    first, *spanning = page["head"]
    head = f'<th rowspan="2">{first}</th>' + "".join(f'<th colspan="2">{text}</th>' for text in spanning)
    subhead = "".join(f"<th>{text}</th>" for text in page["subhead"])
    body = "".join("<tr>" + "".join(f"<td>{text}</td>" for text in row) + "</tr>" for row in page["rows"])
    return f"<table><thead><tr>{head}</tr><tr>{subhead}</tr></thead><tbody>{body}</tbody></table>"


def formulas() -> str:
    """A page with mathematics, as Markdown."""
    page = WORDS["formulas"]
    blocks = [
        f"$${block['latex_display']}$$" if "display" in block else "".join(block["latex"]) for block in page["blocks"]
    ]
    return "\n\n".join([f"# {page['title']}", *blocks])


def formula() -> str:
    """The second displayed formula of that page, as LaTeX."""
    latex: str = WORDS["formulas"]["blocks"][3]["latex_display"]
    return latex


def scan() -> str:
    """A typewritten letter."""
    page = WORDS["scan"]
    return lines([page["letterhead"], *page["lines"], *page["paragraphs"], page["signed"]])


def rotated() -> str:
    """A notice."""
    page = WORDS["rotated"]
    return lines([page["title"], *page["paragraphs"], page["footer"]])


def chinese() -> str:
    """A page in Chinese."""
    page = WORDS["chinese"]
    return lines([page["title"], *page["paragraphs"], page["footer"]])


def handbook(number: int) -> str:
    """One page of the PDF; `number` counts from 1."""
    page = WORDS["handbook"]
    sections = page["pages"][number - 1]["sections"]
    head = [page["title"], page["subtitle"]] if number == 1 else []
    return lines([*head, *(text for section in sections for text in (section["head"], *section["paragraphs"]))])


def lines(parts: Iterable[str]) -> str:
    """One part per line."""
    return "\n".join(parts)

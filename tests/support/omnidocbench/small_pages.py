"""Small pages of OmniDocBench, made by us."""

from __future__ import annotations

from typing import Any

TABLE = "<table><tr><td>rain</td><td>12</td></tr><tr><td>snow</td><td>3</td></tr></table>"
LATEX = r"\begin{tabular}{ll} rain & 12 \\ snow & 3 \\ \end{tabular}"
WORDS = "The harbour lies quiet in the morning, and the boats come back with the tide."


def block(number: int, category: str, **content: str) -> dict[str, Any]:
    return {
        "category_type": category,
        "order": number,
        "anno_id": number,
        "poly": [0.0] * 8,
        "ignore": False,
        "attribute": {"text_language": "text_english"},
        **content,
    }


def page(image: str, *blocks: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    facts = {"data_source": "book", "language": "english", "special_issue": ["None"], **attributes}
    info = {"image_path": image, "page_no": 1, "height": 40, "width": 60, "page_attribute": facts}
    return {"layout_dets": list(blocks), "page_info": info, "extra": {"relation": []}}

"""Stands in for mineru 3.4.5: writes the files that `do_parse` writes."""

from __future__ import annotations

import json
from pathlib import Path

from stand_in import look_at, note


def read_fn(path, file_suffix=None):
    """The page as bytes; here its path, so that it is known later which page that was."""
    assert isinstance(path, Path)
    return str(path).encode()


def do_parse(
    output_dir,
    pdf_file_names,
    pdf_bytes_list,
    p_lang_list,
    backend="pipeline",
    parse_method="auto",
    formula_enable=True,
    table_enable=True,
    server_url=None,
    f_draw_layout_bbox=True,
    f_draw_span_bbox=True,
    f_dump_md=True,
    f_dump_middle_json=True,
    f_dump_model_output=True,
    f_dump_orig_pdf=True,
    f_dump_content_list=True,
    f_make_md_mode="mm_markdown",
    start_page_id=0,
    end_page_id=None,
    image_analysis=True,
    client_side_output_generation=False,
    effort="medium",
    **kwargs,
):
    """Write Markdown and a content list for the one page."""
    given = {name: value for name, value in locals().items() if name != "pdf_bytes_list"}
    (stem,), (data,) = pdf_file_names, pdf_bytes_list
    note("do_parse", page=data.decode(), **given)
    text = look_at(data.decode())
    method = parse_method if backend == "pipeline" else "vlm" if backend.startswith("vlm") else f"hybrid_{parse_method}"
    folder = Path(output_dir) / stem / method
    (folder / "images").mkdir(parents=True)
    (folder / f"{stem}.md").write_text(f"# {text}, page {start_page_id}\n", encoding="utf-8")
    listed = [
        {"type": "text", "text": text, "text_level": 1, "bbox": [1, 2, 300, 40], "page_idx": 0},
        {"type": "table", "table_body": "<table></table>", "bbox": [10, 20, 30, 40], "page_idx": 0},
        {"type": "list", "list_items": ["one", "two"], "bbox": [10, 50, 30, 90], "page_idx": 0},
        {"type": "image", "img_path": "images/a.jpg", "image_caption": ["A"], "bbox": [5, 6, 7, 8], "page_idx": 0},
    ]
    (folder / f"{stem}_content_list.json").write_text(json.dumps(listed), encoding="utf-8")

"""PaddleOCR-VL's own pipeline (paddleocr 3.7): layout model and vision model, or a model server for the latter.

Source: PyPI paddleocr 3.7.0 and paddlex 3.7.2; docs/protocols/engines.md#paddleocr-vl,
docs/engines/paddleocr-vl-sdk.md. The package turns the tokens of tables (OTSL) into HTML itself, and cuts loops off;
what it could not turn stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def load(options: dict[str, Any]) -> tuple[Callable[[Any], dict[str, Any]], dict[str, str]]:
    """`backend`, `base_url`, `model`, `region_workers`, `device`, `max_tokens`; all others are the class's own.

    "native" runs the vision model here; with another `backend` the server is asked. What is empty is left to the class.
    """
    from paddleocr import PaddleOCRVL

    ours = ("backend", "base_url", "model", "region_workers", "device", "max_tokens")
    given = {key: value for key, value in options.items() if key not in ours}
    given["vl_rec_backend"] = options["backend"]
    if options["backend"] != "native":
        asked = {"server_url": "base_url", "api_model_name": "model", "max_concurrency": "region_workers"}
        given |= {f"vl_rec_{name}": options[key] for name, key in asked.items() if options[key]}
    if options["device"]:
        given["device"] = options["device"]
    pipeline = PaddleOCRVL(**given)

    def read(page: Any) -> dict[str, Any]:
        results = list(pipeline.predict(page.path, max_new_tokens=options["max_tokens"]))
        if len(results) != 1:
            raise RuntimeError(f"paddleocr gave {len(results)} results for one page")
        return answer(results[0])

    return read, {key: options[key] for key in ("pipeline_version", "backend")}


def answer(result: Any) -> dict[str, Any]:
    """Return what the package found on one page. Raises TypeError if its result has no text."""
    text = result.markdown["markdown_texts"]
    if not isinstance(text, str):
        raise TypeError(f"paddleocr gave {type(text).__name__} as the text of a page, not a str")
    page = result.json["res"]
    # Blocks that were merged of several boxes of the layout model have no score.
    boxes = page.get("layout_det_res", {}).get("boxes", ())
    sure = {whole(one.get("coordinate")): one.get("score") for one in boxes}
    regions = [
        {
            "label": block["block_label"],
            "content": block["block_content"],
            "box": block["block_bbox"],
            "score": sure.get(whole(block["block_bbox"])),
        }
        for block in page["parsing_res_list"]
    ]
    # Some versions wrap width and height in a list.
    size = [side[0] if isinstance(side, list) else side for side in (page["width"], page["height"])]
    return {"text": text, "regions": regions, "size": size, "finish_reason": None}


def whole(box: Any) -> tuple[int, ...]:
    """A box in whole pixels; () for what is none."""
    try:
        return tuple(int(side) for side in box)
    except (TypeError, ValueError, OverflowError):
        return ()

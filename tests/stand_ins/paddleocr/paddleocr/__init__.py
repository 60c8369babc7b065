"""Stands in for paddleocr 3.7.0: one class, which refuses what the package refuses."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from stand_in import ELSEWHERE, look_at, note, wanted

TABLE = "<table><tr><td>1</td></tr></table>"


class Result:
    """What comes back for one page."""

    def __init__(self, text: Any) -> None:
        self.markdown = {"markdown_texts": text, "markdown_images": {}}
        blocks = [
            {"block_label": "text", "block_content": text, "block_bbox": [20, 40, 180, 80]},
            {"block_label": "table", "block_content": TABLE, "block_bbox": [20, 200, 180, 300]},
        ]
        self.json = {"res": {"width": [200], "height": [400], "parsing_res_list": blocks}}


class PaddleOCRVL:
    """The pipeline."""

    def __init__(
        self,
        pipeline_version="v1.6",
        layout_detection_model_name=None,
        layout_detection_model_dir=None,
        layout_threshold=None,
        layout_nms=None,
        layout_unclip_ratio=None,
        layout_merge_bboxes_mode=None,
        vl_rec_model_name=None,
        vl_rec_model_dir=None,
        vl_rec_backend=None,
        vl_rec_server_url=None,
        vl_rec_max_concurrency=None,
        vl_rec_api_model_name=None,
        vl_rec_api_key=None,
        doc_orientation_classify_model_name=None,
        doc_orientation_classify_model_dir=None,
        doc_unwarping_model_name=None,
        doc_unwarping_model_dir=None,
        use_doc_orientation_classify=None,
        use_doc_unwarping=None,
        use_layout_detection=None,
        use_chart_recognition=None,
        use_seal_recognition=None,
        use_ocr_for_image_block=None,
        format_block_content=None,
        merge_layout_blocks=None,
        markdown_ignore_labels=None,
        use_queues=None,
        **kwargs,
    ):
        given = {
            name: value for name, value in locals().items() if name not in ("self", "kwargs") and value is not None
        }
        unknown = kwargs.keys() - {"device", "engine", "engine_config", "enable_hpi", "precision", "cpu_threads"}
        if unknown:
            raise ValueError(f"Unknown argument: {unknown.pop()}")
        note("open", offline=os.environ.get("HF_HUB_OFFLINE", ""), **given, **kwargs)
        if wanted("") == "fetch":
            socket.create_connection(ELSEWHERE, timeout=30)

    def predict(
        self,
        input,
        *,
        use_doc_orientation_classify=None,
        use_doc_unwarping=None,
        use_layout_detection=None,
        use_chart_recognition=None,
        use_seal_recognition=None,
        use_ocr_for_image_block=None,
        layout_threshold=None,
        layout_nms=None,
        layout_unclip_ratio=None,
        layout_merge_bboxes_mode=None,
        layout_shape_mode="auto",
        use_queues=None,
        prompt_label=None,
        format_block_content=None,
        repetition_penalty=None,
        temperature=None,
        top_p=None,
        min_pixels=None,
        max_pixels=None,
        max_new_tokens=None,
        merge_layout_blocks=None,
        markdown_ignore_labels=None,
        vlm_extra_args=None,
        **kwargs,
    ):
        """One result for one page, two on demand, and one without text on demand."""
        note("predict", input=input, max_new_tokens=max_new_tokens, kwargs=kwargs)
        action, text = wanted(Path(input).stem), look_at(input)
        if action == "old":
            return [Result({"markdown_texts": text})]
        return [Result(text)] * (2 if action == "two" else 1)

"""Stands in for glmocr 0.1.5: takes what it takes, and would go to the cloud exactly when it would."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stand_in import look_at, note, wanted

_KEYS = ("ZHIPU_API_KEY", "GLMOCR_API_KEY")


class PipelineResult:
    """What comes back for one page."""

    def __init__(
        self,
        json_result: Any,
        markdown_result: str | None,
        original_images: list[str],
        image_files: dict[str, Any] | None = None,
        raw_json_result: list[Any] | None = None,
        layout_vis_images: dict[int, Any] | None = None,
    ) -> None:
        self.json_result, self.markdown_result, self.raw_json_result = json_result, markdown_result, raw_json_result


class GlmOcr:
    """The package's entrance, with its own rule about the cloud: a key is enough, unless a mode is given."""

    def __init__(
        self,
        config_path: str | None = None,
        *,
        api_key: str | None = None,
        api_url: str | None = None,
        model: str | None = None,
        mode: str | None = None,
        timeout: int | None = None,
        log_level: str | None = None,
        env_file: str | None = None,
        ocr_api_host: str | None = None,
        ocr_api_port: int | None = None,
        cuda_visible_devices: str | None = None,
        layout_device: str | None = None,
        **kwargs: Any,
    ) -> None:
        assert config_path is not None and env_file is not None
        if not Path(env_file).is_file():
            raise FileNotFoundError(env_file)
        config = json.loads(Path(config_path).read_text(encoding="utf-8"))
        seen = sorted(name for name in os.environ if name in _KEYS or name.startswith("GLMOCR_"))
        if seen and mode is None:
            mode = "maas"
        enabled = config["pipeline"]["maas"]["enabled"] if mode is None else mode == "maas"
        # A version that does as it likes.
        enabled = enabled or os.environ.get("OMP_STAND_IN") == "cloud:"
        self.config_model = SimpleNamespace(pipeline=SimpleNamespace(maas=SimpleNamespace(enabled=enabled)))
        note("open", mode=mode, cloud=enabled, seen=seen, env=Path(env_file).read_text(), config=config)

    def parse(
        self,
        images: str,
        *,
        stream: bool = False,
        save_layout_visualization: bool = True,
        preserve_order: bool = True,
        **kwargs: Any,
    ) -> PipelineResult:
        """Read one page, with a region that is no text and, on demand, regions that failed."""
        action = wanted(Path(images).stem)
        text = look_at(images)
        note("parse", images=images, visualization=save_layout_visualization)
        if action == "no-page":
            return PipelineResult([], "", [images], raw_json_result=[])
        found: list[dict[str, Any]] = [
            {"index": 0, "label": "doc_title", "content": f"# {text}", "bbox_2d": [100, 50, 900, 120]},
            {"index": 1, "label": "image", "content": None, "bbox_2d": [100, 200, 500, 600]},
            {"index": 2, "label": "text", "content": "second", "bbox_2d": [100, 700, 900, 800]},
        ]
        if action == "one-region":
            found[2]["content"] = None
        elif action == "all-regions":
            found[0]["content"] = found[2]["content"] = None
        elif action == "empty-region":
            found[0]["content"], found[2]["content"] = None, ""
        elif action == "blank":
            logging.getLogger("glmocr.pipeline").warning("a page of one colour")
            return PipelineResult([[]], "", [images], raw_json_result=[[]])
        elif action == "no-layout":
            logging.getLogger("glmocr.pipeline").warning("Layout detection failed for pages [0], skipping batch: oom")
            return PipelineResult([[]], "", [images], raw_json_result=[[]])
        kept = [{**each, "content": each["content"] or ""} for each in found if each["content"] or each["index"] == 1]
        markdown = "\n\n".join(each["content"] for each in kept if each["content"])
        return PipelineResult([kept], markdown, [images], raw_json_result=[found])

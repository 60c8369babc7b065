"""GLM-OCR's own pipeline (glmocr 0.1.5): its layout model here, every region asked of a model server of the user's.

Source: zai-org/GLM-OCR @ cef4d0ea; docs/protocols/engines.md#glm-ocr, docs/engines/glm-ocr-sdk.md. By itself the
package sends documents to a cloud, and a key in the environment is enough for that: here it never does
(`own_config`).
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: What the package's log says, as a warning, of a page whose layout model failed; the page is then empty.
_NO_LAYOUT = "Layout detection failed"
_SAMPLING = ("max_tokens", "temperature", "top_p", "top_k", "repetition_penalty")


class CloudError(Exception):
    """The vendor's cloud would be used."""

    outcome = "unavailable"


class Complaints(logging.Handler):
    """The complaints that the package only writes to its log; `broken`: that the layout of the page was not found."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []
        self.broken: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message."""
        text = record.getMessage()[:300]
        self.heard.append(text)
        self.broken += [text] if record.levelno >= logging.ERROR or _NO_LAYOUT in text else []

    def first(self) -> str:
        """The reason that the package gives."""
        return self.heard[0] if self.heard else "it gives no reason"


def load(options: dict[str, Any]) -> tuple[Callable[[Any], dict[str, Any]], dict[str, str]]:
    """`base_url` and `model` of the server, sampling, limits, and `config` over the package's config.yaml."""
    import glmocr
    import yaml
    from glmocr.config import GlmOcrConfig

    config = merged(yaml.safe_load(Path(GlmOcrConfig.default_path()).read_text("utf-8")) or {}, own_config(options))
    # It is given files for everything, so that it looks for none of the user's: without an `env_file`, it takes the
    # next .env above the working folder, with the key and the address that stand there. JSON is YAML.
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.yaml").write_text(json.dumps(config), "utf-8")
        (Path(folder) / "empty.env").touch()
        reader = glmocr.GlmOcr(
            config_path=f"{folder}/config.yaml",
            mode="selfhosted",
            env_file=f"{folder}/empty.env",
            layout_device=options["layout_device"] or None,
        )
    if reader.config_model.pipeline.maas.enabled or getattr(reader, "_use_maas", False):
        raise CloudError("glmocr would use the vendor's cloud, so nothing was sent or read")
    complaints = Complaints()
    logging.getLogger("glmocr").addHandler(complaints)
    skipped = config["pipeline"].get("layout", {}).get("label_task_mapping", {}).get("skip", ())

    def read(page: Any) -> dict[str, Any]:
        complaints.heard, complaints.broken = [], []
        return answer(reader.parse(page.path, save_layout_visualization=False), skipped, complaints)

    return read, {"mode": "selfhosted"}


def own_config(options: dict[str, Any]) -> dict[str, Any]:
    """Return what is not as in the package's config.yaml. Its cloud is off, and has no address and no key."""
    if "maas" in options["config"] or "maas" in options["config"].get("pipeline", {}):
        raise CloudError("config.pipeline.maas: that is the vendor's cloud, and Loupe sends no document there")
    base = (options["base_url"] or "http://127.0.0.1:8080/v1").rstrip("/")
    ollama = options["api_mode"] == "ollama_generate"
    ours = {
        "pipeline": {
            "maas": {"enabled": False, "api_url": "http://127.0.0.1:9/", "api_key": None},
            "ocr_api": {
                "api_url": f"{base.removesuffix('/v1')}/api/generate" if ollama else f"{base}/chat/completions",
                "model": options["model"],
                "api_mode": options["api_mode"],
                "request_timeout": options["region_timeout"],
                "retry_max_attempts": options["region_retries"],
            },
            "max_workers": options["region_workers"],
            "page_loader": {name: options[name] for name in _SAMPLING},
        },
        "logging": {"level": "WARNING"},
    }
    return merged(ours, options["config"])


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """A table with another laid over it, table by table.

    >>> merged({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})
    {'a': {'b': 3, 'c': 2}}
    """
    found = dict(base)
    for key, value in over.items():
        below = found.get(key)
        found[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return found


def answer(result: Any, skipped: Any, complaints: Complaints) -> dict[str, Any]:
    """Return what the package found on one page. Raises RuntimeError if no page was read, or if every region failed.

    A region that failed is null in the package's raw result, as one that is not read (`skipped`) is, and is missing
    from its text without a word; one that was read and is empty is "". A layout model that failed leaves a page without
    regions, and a complaint in the log: a blank page leaves none, or harmless ones.
    """
    if not result.json_result:
        raise RuntimeError(f"glmocr could not load the page: {complaints.first()}")
    found = [one for page in result.raw_json_result or [] for one in page]
    if not found and complaints.broken:
        raise RuntimeError(f"glmocr found no regions: {complaints.broken[0]}")
    asked = [one.get("content") for one in found if one.get("label") not in (skipped or ())]
    failed = sum(content is None for content in asked)
    if failed and failed == len(asked):
        raise RuntimeError(f"all {failed} regions that glmocr asked for failed: {complaints.first()}")
    regions = [
        {
            "label": one.get("label", ""),
            "native_label": one.get("native_label") or one.get("label", ""),
            "content": one.get("content"),
            "box": one.get("bbox_2d"),
            "score": one.get("score"),
        }
        for page in result.json_result[:1]
        for one in page
    ]
    return {
        "text": result.markdown_result or "",
        "regions": regions,
        "counts": {"failed_regions": failed, "calls": len(asked)},
        "finish_reason": None,
    }

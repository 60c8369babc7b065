"""Marker 2: Markdown of a page. Its model runs on a server of the user's; it starts none and asks no other."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`server`: address of a server with surya's model, such as http://127.0.0.1:8000/v1."""
    if not options["server"]:
        raise ValueError("no server with surya's model is named")
    os.environ |= {"SURYA_INFERENCE_URL": options["server"], "SURYA_INFERENCE_AUTOSTART": "false"}
    from marker.converters.pdf import PdfConverter
    from marker.models import create_model_dict
    from marker.output import text_from_rendered

    converter = PdfConverter(
        artifact_dict=create_model_dict(), config={"disable_image_extraction": True, "use_llm": False}
    )
    return lambda page: str(text_from_rendered(converter(page.path))[0])

"""Docling 2: layout, tables and OCR as Markdown, with models from the hub's cache or DOCLING_ARTIFACTS_PATH."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from docling.datamodel.accelerator_options import AcceleratorOptions
from docling.datamodel.base_models import InputFormat
from docling.datamodel.pipeline_options import PdfPipelineOptions
from docling.document_converter import DocumentConverter, ImageFormatOption, PdfFormatOption


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`ocr`: whether to read pictures. The models are loaded now, not at the first page."""
    pipeline = PdfPipelineOptions(
        do_ocr=options["ocr"],
        enable_remote_services=False,
        accelerator_options=AcceleratorOptions(num_threads=int(os.environ.get("OMP_NUM_THREADS", "1"))),
        artifacts_path=os.environ.get("DOCLING_ARTIFACTS_PATH"),
    )
    formats = {
        InputFormat.PDF: PdfFormatOption(pipeline_options=pipeline),
        InputFormat.IMAGE: ImageFormatOption(pipeline_options=pipeline),
    }
    converter = DocumentConverter(format_options=formats)
    converter.initialize_pipeline(InputFormat.PDF)
    return lambda page: str(converter.convert(page.path).document.export_to_markdown(image_placeholder=""))

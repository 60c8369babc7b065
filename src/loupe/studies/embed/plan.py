"""What `loupe embed` is asked to do, and how queries are put to the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from loupe.engines.registry import Profile
from loupe.files.folder import Folder
from loupe.studies.embed.client import Endpoint
from loupe.studies.embed.inputs import PageIds

#: How a query carries its instruction: as system message (VL family), in front of it (text family), not at all.
QueryFormat: TypeAlias = Literal["system", "instruct", "plain"]

INSTRUCTION = "Retrieve images or text relevant to the user's query."
MAX_MODEL_LEN = 8192
#: What the model below gives; others give what their first vector has.
_DIMENSION = 2048
_MODEL_OF_THAT_DIMENSION = "qwen3-vl-embedding-2b"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The options of `loupe embed`. `query_format` "" goes by the name of the model; `model` "" is the served one.

    `served` describes a server that is to be started, in place of one at `base_urls`.
    """

    run: Path
    output: Path
    queries: Path | None = None
    base_urls: tuple[str, ...] = ()
    served: Profile | None = None
    model: str = ""
    endpoint: Endpoint = "embeddings"
    query_format: QueryFormat | Literal[""] = ""
    instruction: str = INSTRUCTION
    max_model_len: int = MAX_MODEL_LEN
    dimension: int | None = None
    text_batch: int = 32
    image_batch: int = 30
    timeout: float = 300.0
    page_ids: PageIds = "document"
    regions_file: Path | None = None
    with_regions: bool = True
    fresh: bool = False
    shared: bool = False

    @property
    def folder(self) -> Folder:
        """Where the files go: a folder in that of the run, which may be a stranger's, or one that the user named."""
        if self.output.is_relative_to(self.run) and ".." not in self.output.parts:
            return Folder(self.run) / str(self.output.relative_to(self.run))
        return Folder(self.output)


def query_format_of(model: str) -> QueryFormat:
    """How the family of a model takes instructions, by its name; no instruction for other models."""
    name = model.lower()
    if "qwen3-vl-embedding" in name:
        return "system"
    return "instruct" if "qwen3-embedding" in name else "plain"


def dimension_of(model: str) -> int | None:
    """The dimension of a model that we know."""
    return _DIMENSION if _MODEL_OF_THAT_DIMENSION in model.lower() else None


def query_messages(query: str, instruction: str) -> list[dict[str, Any]]:
    """A query as a conversation with the instruction as system message."""
    return [
        {"role": "system", "content": [{"type": "text", "text": instruction}]},
        {"role": "user", "content": [{"type": "text", "text": query}]},
    ]


def query_text(query: str, instruction: str, form: QueryFormat) -> str:
    """A query as a text, with its instruction in front or without any."""
    return f"Instruct: {instruction}\nQuery: {query}" if form == "instruct" else query


def figure_messages(url: str, caption: str) -> list[dict[str, Any]]:
    """A figure with its caption as a conversation; no text part where there is no caption."""
    content: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}}]
    return [{"role": "user", "content": [*content, *([{"type": "text", "text": caption}] if caption else [])]}]

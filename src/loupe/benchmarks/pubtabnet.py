"""PubTabNet: images of tables from scientific articles, transcribed to HTML, scored by TEDS and TEDS-S.

Paper: Zhong, ShafieiBavani, Jimeno Yepes, "Image-based table recognition: data, model, and evaluation", ECCV 2020.
Protocol: docs/benchmarks/pubtabnet.md
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from loupe.benchmarks.table_answers.soup import need_table_tools, table_tools
from loupe.benchmarks.table_images import layouts, scoring
from loupe.benchmarks.table_images.layouts import SAME_SPLIT, Escape, TableImage
from loupe.data.extras import need
from loupe.data.parquet import find_shards
from loupe.data.prepared import is_prepared, refuse_options
from loupe.data.store import default_root
from loupe.errors import DatasetError
from loupe.types import AnswerLayout, Benchmark, Sample

Split: TypeAlias = Literal["val", "train", "test"]

_LAYOUT = "PubTabNet_2.0.0.jsonl with val/, or data/validation-*.parquet, or the prepared form (metadata.jsonl)"
_FOLDERS = (".", "pubtabnet")

DEVIATIONS = scoring.DEVIATIONS
verify_case = scoring.verify_case


def load(root: Path | None, split: Split = "val", escape: Escape = "raw") -> Iterator[Sample]:
    """Yield the tables of one split in stored order. `escape` says how text becomes HTML where tokens are published."""
    need("lxml", extra="tables", purpose="TEDS")
    need_table_tools()
    folder = default_root("pubtabnet") if root is None else root
    return map(scoring.sample_of, _tables(folder, split, escape))


def _tables(root: Path, split: Split, escape: Escape) -> Iterator[TableImage]:
    if root.suffix == ".json":
        return layouts.read_ground_truth(root)
    if is_prepared(root):
        refuse_options(root, split=split != "val", escape=escape != "raw")
        return layouts.read_prepared(root)
    lines = _lines_file(root)
    if lines is not None:
        return layouts.read_lines(lines, split=split, escape=escape)
    shards = [root] if root.suffix == ".parquet" else find_shards(root, *SAME_SPLIT[split])
    if not shards:
        raise DatasetError(
            f"{root}: no split {split!r} of PubTabNet here; expected {_LAYOUT}", hint="loupe data get pubtabnet"
        )
    return layouts.read_parquet(shards, name="pubtabnet", escape=escape)


def _lines_file(root: Path) -> Path | None:
    if root.suffix == ".jsonl":
        return root
    found = (file for folder in _FOLDERS for file in sorted((root / folder).glob("PubTabNet_*.jsonl")))
    return next(found, None)


benchmark = Benchmark(
    title="PubTabNet",
    version="2.0.0",
    task="table",
    paper="https://arxiv.org/abs/1911.10683",
    hub="apoidea/pubtabnet-html",
    prompt=scoring.PROMPT,
    measures=scoring.MEASURES,
    load=load,
    answers=AnswerLayout(published_names=layouts.published_names),
    score=scoring.score,
    tools=table_tools,
    max_tokens=4096,
)

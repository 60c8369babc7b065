"""PubTabNet: images of tables from scientific articles, transcribed to HTML, scored by TEDS and TEDS-S.

Paper: Zhong, ShafieiBavani, Jimeno Yepes, "Image-based table recognition: data, model, and evaluation", ECCV 2020.
Protocol: docs/benchmarks/pubtabnet.md
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from loupe.benchmarks.shared import table_images
from loupe.benchmarks.shared.table_answers.html_grids import table_tools
from loupe.benchmarks.shared.table_images import SAME_SPLIT, Escape, TableImage
from loupe.data.hub.store import default_root
from loupe.data.parquet import find_shards
from loupe.data.prepared import is_prepared, refuse_options
from loupe.errors import DatasetError
from loupe.types import AnswerLayout, Benchmark, DataSet, ParityCases, Sample

Split: TypeAlias = Literal["val", "train", "test"]

_LAYOUT = "PubTabNet_2.0.0.jsonl with val/, or data/validation-*.parquet, or the prepared form (metadata.jsonl)"
_FOLDERS = (".", "pubtabnet")


def load(root: Path | None, split: Split = "val", escape: Escape = "raw") -> Iterator[Sample]:
    """Yield the tables of one split in stored order. `escape` says how text becomes HTML where tokens are published."""
    folder = default_root("pubtabnet") if root is None else root
    return map(table_images.sample_of, _tables(folder, split, escape))


def _tables(root: Path, split: Split, escape: Escape) -> Iterator[TableImage]:
    if root.suffix == ".json":
        return table_images.read_ground_truth(root)
    if is_prepared(root):
        refuse_options(root, split=split != "val", escape=escape != "raw")
        return table_images.read_prepared(root)
    lines = _lines_file(root)
    if lines is not None:
        return table_images.read_lines(lines, split=split, escape=escape)
    shards = [root] if root.suffix == ".parquet" else find_shards(root, *SAME_SPLIT[split])
    if not shards:
        raise DatasetError(
            f"{root}: no split {split!r} of PubTabNet here; expected {_LAYOUT}",
            hint="download it: loupe data get pubtabnet",
        )
    return table_images.read_parquet(shards, name="pubtabnet", escape=escape)


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
    data=DataSet(
        repo="apoidea/pubtabnet-html",
        patterns=("*validation*.parquet",),
        licence="annotations CDLA-Permissive-1.0; images under the terms of the PMC Open Access Subset",
        note="9,115 tables",
        sources={"original": DataSet(repo="ajimeno/PubTabNet")},
    ),
    parity=ParityCases(
        compare=table_images.verify_case,
        deviations=table_images.DEVIATIONS,
        oracles={"teds/cases.jsonl": table_images.oracle_case},
    ),
    prompt=table_images.PROMPT,
    measures=table_images.MEASURES,
    load=load,
    answers=AnswerLayout(published_names=table_images.published_names),
    score=table_images.score,
    tools=table_tools,
    max_tokens=4096,
)

"""TEDS_TEST: 200 tables of PubTabNet's validation split, drawn from row 4000 on, scored like `pubtabnet`.

Protocol: docs/benchmarks/teds_test.md
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from loupe.benchmarks.shared import table_images
from loupe.benchmarks.shared.table_answers.html_grids import table_tools
from loupe.benchmarks.shared.table_images import SAME_SPLIT, Escape, TableImage
from loupe.data.hub.store import default_root
from loupe.data.parquet import find_shards
from loupe.data.prepared import is_prepared, refuse_options
from loupe.errors import DatasetError, UsageError
from loupe.types import AnswerLayout, Benchmark, DataSet, ParityCases, Sample

#: Rows of the split, in the order of apoidea/pubtabnet-html.
FIRST_ROW = 4000
ROWS = 200


def load(root: Path | None, first: int = FIRST_ROW, rows: int = ROWS, escape: Escape = "raw") -> Iterator[Sample]:
    """Yield the tables of the rows from `first` on; without a folder, from `teds_test` or `pubtabnet` in the store."""
    if first < 0 or rows < 1:
        raise UsageError(f"first={first}, rows={rows}: there are no such rows", hint="-o first=4000 -o rows=200")
    folder = default_root("pubtabnet") if root is None else root
    if is_prepared(folder):
        refuse_options(folder, first=first != FIRST_ROW, rows=rows != ROWS, escape=escape != "raw")
        return map(table_images.sample_of, table_images.read_prepared(folder))
    return map(table_images.sample_of, _tables(folder, first, rows, escape))


def _tables(root: Path, first: int, rows: int, escape: Escape) -> Iterator[TableImage]:
    shards = [root] if root.suffix == ".parquet" else find_shards(root, *SAME_SPLIT["val"])
    if not shards:
        raise DatasetError(
            f"{root}: the rows of TEDS_TEST are counted in data/validation-*.parquet, which is not here",
            hint="download it: loupe data get teds_test",
        )
    found = 0
    for table in table_images.read_parquet(shards, name="teds_test", escape=escape, first=first, count=rows):
        found += 1
        yield table
    if not found:
        raise DatasetError(f"{shards[0]}: has no row {first}; TEDS_TEST is rows {first} to {first + rows - 1}")


benchmark = Benchmark(
    title="TEDS_TEST",
    version="001",
    task="table",
    paper="https://arxiv.org/abs/1911.10683",
    data=DataSet(
        repo="apoidea/pubtabnet-html",
        patterns=("*validation*.parquet",),
        licence="annotations CDLA-Permissive-1.0; images under the terms of the PMC Open Access Subset",
        note="200 of the tables of pubtabnet; the same files",
        folder="pubtabnet",
    ),
    parity=ParityCases(compare=table_images.verify_case, deviations=table_images.DEVIATIONS),
    prompt=table_images.PROMPT,
    measures=table_images.MEASURES,
    load=load,
    answers=AnswerLayout(published_names=table_images.published_names),
    score=table_images.score,
    tools=table_tools,
    max_tokens=4096,
)

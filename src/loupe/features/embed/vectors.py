"""Files of the embedding stage: matrices as .npy made from the journal, their row order, and the checks that they pass.

Protocol: docs/embedding.md. Little-endian float32 in C order, rows of length 1; a failed item is a row of zeros with an
entry in the meta file, never a missing row.
"""

from __future__ import annotations

import hashlib
import platform
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from loupe import __version__
from loupe.errors import DatasetError, LoupeError
from loupe.features.embed.corpus import MAX_PIXELS, MIN_PIXELS, Corpus, Row
from loupe.features.embed.inputs import Plan
from loupe.features.embed.journal import Settings, Vector, VectorJournal, key_of
from loupe.files.folder import Folder
from loupe.runs.folder import RunFolder
from loupe.typed import encode_json, json_decoder
from loupe.types import UNDECODABLE

Matrix: TypeAlias = npt.NDArray[np.float32]

TEXTS, REGIONS, QUERIES = "corpus_ocr_text.npy", "corpus_regions.npy", "queries.npy"
REGION_LINES, PAGE_IDS, QUERY_IDS, META = (
    "region_metadata.jsonl",
    "page_ids.json",
    "query_ids.json",
    "embedding_meta.json",
)
#: Rows differ from length 1 by no more than this.
_TOLERANCE = 1e-3
_CHUNK = 4096
#: What NumPy raises on a file that is none of its own: headers are read as Python, and sizes in them are believed.
_BROKEN = (OSError, ValueError, EOFError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError)


class RegionLine(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `corpus_regions.npy`: where it comes from."""

    page_id: str
    region_index: int
    crop_path: str
    caption_text: str
    label: str


class RowError(msgspec.Struct, frozen=True, kw_only=True):
    """A row of zeros, and why: `matrix` is the file, `outcome` empty, rejected or error."""

    matrix: str
    row: int
    id: str
    outcome: str
    error: str


class Fingerprint(msgspec.Struct, frozen=True):
    """Digests of the settings with which corpus and queries were made; they must be the same."""

    corpus: str = ""
    queries: str = ""


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """`embedding_meta.json`; `settings` and `counts` are for people and other programs."""

    model: str = ""
    revision: str | None = None
    dtype: str = "float32"
    dimension: int = 0
    max_model_len: int | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    instruction: str = ""
    query_format: str = ""
    endpoint: str = ""
    server: dict[str, str] = {}
    versions: dict[str, str] = {}
    counts: dict[str, int] = {}
    inputs: dict[str, str] = {}
    fingerprint: Fingerprint = Fingerprint()
    errors: list[RowError] = []


@dataclass(frozen=True, kw_only=True)
class Embeddings:
    """Everything in a folder of embeddings; `queries` is None where there are none."""

    texts: Matrix
    page_ids: list[str]
    regions: Matrix
    region_lines: list[RegionLine]
    queries: Matrix | None = None
    query_ids: list[str] = field(default_factory=list)
    meta: Meta = field(default_factory=Meta)

    def without_any(self) -> list[str]:
        """The kinds that have items, of which some failed, and not one vector: `pages`, `regions`, `queries`."""
        kinds = {"pages": (TEXTS, self.texts), "regions": (REGIONS, self.regions), "queries": (QUERIES, self.queries)}
        found = []
        for kind, (name, matrix) in kinds.items():
            outcomes = [error.outcome for error in self.meta.errors if error.matrix == name]
            if matrix is not None and len(outcomes) == len(matrix) and set(outcomes) - {"empty"}:
                found.append(kind)
        return found


def write_matrix(folder: Folder, name: str, rows: Iterable[Vector | None], shape: tuple[int, int]) -> None:
    """Write rows as they come, None as zeros; the file is whole or not there, and memory holds one row."""
    empty = np.zeros(shape[1], dtype="<f4")
    with folder.draft(name) as draft:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(draft.file, header)
        for row in rows:
            draft.file.write((empty if row is None else row.astype("<f4")).tobytes())
        draft.replace()


def write_json(folder: Folder, name: str, value: Any) -> None:
    """Write one JSON document, whole or not at all."""
    folder.write(name, msgspec.json.format(encode_json(value), indent=2) + b"\n")


def read_embeddings(folder: Path, *, mixed: bool = False) -> Embeddings:
    """The checked content of a folder. `mixed` allows queries made with other settings than the corpus.

    Raises DatasetError for whatever does not fit: rows and ids, dimensions, norms, NaN, unknown pages, fingerprints.
    """
    files = Folder(folder)
    meta = _decoded(files, META, Meta) if (folder / META).exists() else Meta()
    failed = {(error.matrix, error.row) for error in meta.errors}
    texts = _matrix(files, TEXTS, failed)
    page_ids = _decoded(files, PAGE_IDS, list[str])
    regions, lines = np.zeros((0, texts.shape[1]), dtype=np.float32), []
    if (folder / REGIONS).exists():
        regions = _matrix(files, REGIONS, failed)
        lines = _region_lines(files, REGION_LINES)
    queries, query_ids = None, []
    if (folder / QUERIES).exists():
        queries = _matrix(files, QUERIES, failed)
        query_ids = _decoded(files, QUERY_IDS, list[str])
    found = Embeddings(
        texts=texts,
        page_ids=page_ids,
        regions=regions,
        region_lines=lines,
        queries=queries,
        query_ids=query_ids,
        meta=meta,
    )
    _check_rows(folder, found)
    marks = meta.fingerprint
    if not mixed and queries is not None and marks.corpus != marks.queries:
        raise DatasetError(
            f"{folder}: queries and corpus were made with other models or instructions",
            hint="use --mixed to score them anyway",
        )
    return found


def _check_rows(folder: Path, found: Embeddings) -> None:
    for name, matrix, ids in (
        (TEXTS, found.texts, found.page_ids),
        (REGIONS, found.regions, found.region_lines),
        (QUERIES, found.queries, found.query_ids),
    ):
        if matrix is None:
            continue
        if len(matrix) != len(ids):
            raise _damaged(f"{folder / name}: {len(matrix):,} rows for {len(ids):,} ids")
        if len(matrix) and matrix.shape[1] != found.texts.shape[1]:
            raise _damaged(f"{folder / name}: dimension {matrix.shape[1]:,}, the pages have {found.texts.shape[1]:,}")
    for name, ids in ((PAGE_IDS, found.page_ids), (QUERY_IDS, found.query_ids)):
        if len(set(ids)) != len(ids):
            raise _damaged(f"{folder / name}: {_twice(ids)!r} comes twice")
    known = set(found.page_ids)
    strange = next((line.page_id for line in found.region_lines if line.page_id not in known), None)
    if strange is not None:
        raise _damaged(f"{folder / REGION_LINES}: page {strange!r} is not among the pages")


def _matrix(folder: Folder, name: str, failed: set[tuple[str, int]]) -> Matrix:
    """A matrix of rows of length 1; rows of zeros only where the meta file says why."""
    path = folder.path / name
    try:
        folder.open(name).close()  # No link, no pipe.
        matrix: Matrix = np.load(path, mmap_mode="r" if path.stat().st_size > 1 << 20 else None, allow_pickle=False)
    except FileNotFoundError:
        raise DatasetError(f"{path} is missing", hint="make it: loupe embed RUN") from None
    except _BROKEN as error:
        raise _damaged(f"{path}: not a NumPy file: {error}") from None
    if matrix.ndim != 2 or matrix.dtype != np.dtype("<f4"):
        raise _damaged(f"{path}: {matrix.dtype} in {matrix.ndim} dimensions, wanted float32 in 2")
    for start in range(0, len(matrix), _CHUNK):
        part = np.asarray(matrix[start : start + _CHUNK], dtype=np.float64)
        lengths = np.sqrt(np.square(part).sum(axis=1))
        for row in np.flatnonzero(~(np.abs(lengths - 1.0) <= _TOLERANCE)).tolist():
            if not (lengths[row] == 0.0 and (path.name, start + row) in failed):
                raise _damaged(f"{path}: row {start + row} has length {lengths[row]:.4g}, wanted 1")
    return matrix


def _region_lines(folder: Folder, name: str) -> list[RegionLine]:
    path = folder.path / name
    try:
        return json_decoder(RegionLine).decode_lines(folder.read(name))
    except FileNotFoundError:
        raise DatasetError(f"{path} is missing", hint="make it: loupe embed RUN") from None
    except UNDECODABLE as error:
        raise _damaged(f"{path}: {error}") from None


def _decoded(folder: Folder, name: str, kind: Any) -> Any:
    path = folder.path / name
    try:
        return json_decoder(kind).decode(folder.read(name))
    except FileNotFoundError:
        raise DatasetError(f"{path} is missing", hint="make it: loupe embed RUN") from None
    except UNDECODABLE as error:
        raise _damaged(f"{path}: {error}") from None


def _twice(ids: Sequence[str]) -> str:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            break
        seen.add(one)
    return one


def _damaged(message: str) -> LoupeError:
    return DatasetError(message, hint="make the files again: loupe embed RUN")


_LIBRARIES = ("numpy", "pillow", "aiohttp")


def write_outputs(plan: Plan, run: RunFolder, journal: VectorJournal, corpus: Corpus, uncounted: Iterable[str]) -> None:
    """Write every file, then read them back as anybody would, so that what is wrong is known now.

    Without a single vector nobody knows how many numbers one has: the matrices are as wide as was asked for, or 0.
    """
    folder = plan.folder
    dimension = journal.dimension or plan.dimension or 0
    figures = [figure.row for figure in corpus.figures]
    # The meta file comes last: without it, rows of zeros are errors.
    folder.remove(META)
    if not plan.queries:
        # Those of an earlier command would pass for queries of this one; their vectors stay in the journal.
        for name in (QUERIES, QUERY_IDS):
            folder.remove(name)
    for name, rows in ((TEXTS, corpus.texts), (REGIONS, figures), (QUERIES, corpus.queries)):
        if name != QUERIES or plan.queries:
            vectors = (journal.vector(row.key) if row.key else None for row in rows)
            write_matrix(folder, name, vectors, (len(rows), dimension))
    lines = [
        RegionLine(
            page_id=figure.page_id,
            region_index=figure.region.index,
            crop_path=figure.path,
            caption_text=figure.caption,
            label=figure.region.label,
        )
        for figure in corpus.figures
    ]
    folder.write(REGION_LINES, b"".join(encode_json(line) + b"\n" for line in lines))
    write_json(folder, PAGE_IDS, [row.id for row in corpus.texts])
    if plan.queries:
        write_json(folder, QUERY_IDS, [row.id for row in corpus.queries])
    write_json(folder, META, _meta(plan, run, journal, corpus, set(uncounted), dimension))
    read_embeddings(folder.path)


def errors_of(corpus: Corpus) -> Iterator[RowError]:
    """The rows of zeros."""
    figures = [figure.row for figure in corpus.figures]
    for name, rows in ((TEXTS, corpus.texts), (REGIONS, figures), (QUERIES, corpus.queries)):
        for number, row in enumerate(rows):
            if row.error:
                yield RowError(matrix=name, row=number, id=row.id, outcome=row.outcome, error=row.error)


def _meta(
    plan: Plan, run: RunFolder, journal: VectorJournal, corpus: Corpus, uncounted: set[str], dimension: int
) -> Meta:
    settings = journal.settings
    if settings is None:
        # Nothing was ever asked: there was nothing to embed.
        return Meta(dimension=dimension, counts=_counts(corpus, journal, uncounted), errors=list(errors_of(corpus)))
    fingerprint = fingerprint_of(settings)
    return Meta(
        model=settings.model,
        dimension=dimension,
        max_model_len=settings.max_model_len,
        min_pixels=MIN_PIXELS,
        max_pixels=MAX_PIXELS,
        instruction=settings.instruction,
        query_format=settings.query_format,
        endpoint=settings.endpoint,
        server=journal.facts,
        versions={
            "loupe": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _LIBRARIES},
        },
        counts=_counts(corpus, journal, uncounted),
        inputs={
            "run": str(run.path),
            "signature": run.info.signature,
            "texts": _digest(corpus.texts),
            "regions": _digest([figure.row for figure in corpus.figures]),
            "queries": _digest(corpus.queries),
        },
        fingerprint=Fingerprint(corpus=fingerprint, queries=fingerprint if plan.queries else ""),
        errors=list(errors_of(corpus)),
    )


def fingerprint_of(settings: Settings) -> str:
    """Sixteen hex digits over everything that a vector depends on besides its item."""
    return key_of(*(str(getattr(settings, name)) for name in Settings.__struct_fields__))[:16]


def _counts(corpus: Corpus, journal: VectorJournal, uncounted: set[str]) -> dict[str, int]:
    keys = [row.key for row in (*corpus.texts, *(figure.row for figure in corpus.figures), *corpus.queries)]
    return {
        "pages": len(corpus.texts),
        "regions": len(corpus.figures),
        "queries": len(corpus.queries),
        "regions_too_small": corpus.small,
        "regions_left_out": corpus.regions_left_out,
        "truncated": sum(journal.truncated(key) for key in keys if key),
        "long_but_not_counted": sum(key in uncounted for key in keys),
        "failed": sum(error.outcome != "empty" for error in errors_of(corpus)),
        "empty": sum(error.outcome == "empty" for error in errors_of(corpus)),
    }


def _digest(rows: Sequence[Row]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(f"{row.id}\0{row.key}\n".encode("utf-8", "replace"))
    return digest.hexdigest()

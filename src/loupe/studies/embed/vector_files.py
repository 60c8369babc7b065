"""From the journal to the files: matrices, row order, metadata of regions, and the meta file that says how."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version

from loupe import __version__
from loupe.runs.folder import RunFolder
from loupe.studies.embed.corpus import Corpus, Row
from loupe.studies.embed.crops import MAX_PIXELS, MIN_PIXELS
from loupe.studies.embed.journal import Settings, VectorJournal, key_of
from loupe.studies.embed.matrices import (
    META,
    PAGE_IDS,
    QUERIES,
    QUERY_IDS,
    REGION_LINES,
    REGIONS,
    TEXTS,
    Fingerprint,
    Meta,
    RegionLine,
    RowError,
    read_embeddings,
    write_json,
    write_matrix,
)
from loupe.studies.embed.plan import Plan
from loupe.typed import encode_json

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

"""The data sets that `loupe data get` knows: where each benchmark's data is published, and which files it needs.

Sources: docs/benchmarks/*.md, "Data" of each. No protocol states a full revision, so `revision` is the
branch that is resolved when the data is fetched; the commit found is what the manifest pins from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from loupe.errors import UsageError, did_you_mean

_PERSONAL = "personal data of deceased people: do not pass the images on"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One published data set. `patterns` are globs over repository paths, in which `*` also crosses `/`.

    `unpack` are globs of zip files that are unpacked after the download. `folder` is the name in the store, the id if
    empty. `sources` are other places of the same data, by name (`--source`).
    """

    id: str
    repo: str
    patterns: tuple[str, ...] = ("*",)
    revision: str = "main"
    licence: str = "not stated: read the page of the data set"
    note: str = ""
    unpack: tuple[str, ...] = ()
    folder: str = ""
    sources: Mapping[str, DataSet] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The name of its folder in the store."""
        return self.folder or self.id

    @property
    def page(self) -> str:
        """Where a person reads about it, and accepts its terms."""
        return f"https://huggingface.co/datasets/{self.repo}"


_KNOWN = (
    DataSet(id="ocrbench", repo="echo840/OCRBench", patterns=("data/test-*.parquet",), note="1,000 questions, 68 MB"),
    DataSet(
        id="omnidocbench",
        repo="opendatalab/OmniDocBench",
        patterns=("OmniDocBench.json", "images/*"),
        licence="for research purposes only, not for commercial use",
        note="main may be a later version than 1.5 (1,355 pages): --revision chooses",
    ),
    DataSet(
        id="unimer_test",
        repo="wanderkid/UniMER_Dataset",
        patterns=("UniMER-Test.zip",),
        unpack=("*.zip",),
        note="23,757 formulas",
        sources={"parquet": DataSet(id="unimer_test", repo="deepcopy/UniMER", patterns=("*test*.parquet",))},
    ),
    DataSet(
        id="pubtabnet",
        repo="apoidea/pubtabnet-html",
        patterns=("*validation*.parquet",),
        licence="annotations CDLA-Permissive-1.0; images under the terms of the PMC Open Access Subset",
        note="9,115 tables",
        sources={"original": DataSet(id="pubtabnet", repo="ajimeno/PubTabNet")},
    ),
    DataSet(
        id="teds_test",
        repo="apoidea/pubtabnet-html",
        patterns=("*validation*.parquet",),
        licence="annotations CDLA-Permissive-1.0; images under the terms of the PMC Open Access Subset",
        note="200 of the tables of pubtabnet; the same files",
        folder="pubtabnet",
    ),
    DataSet(id="nanonets_kie", repo="nanonets/key_information_extraction", patterns=("*.parquet",)),
    DataSet(
        id="handwritten_forms",
        repo="Rasi1610/DeathSe43_44_checkbox",
        patterns=("*val*.parquet",),
        licence=f"not stated; {_PERSONAL}",
        note="89 forms",
    ),
    DataSet(
        id="iam_lines",
        repo="Teklia/IAM-line",
        patterns=("data/test.parquet",),
        licence="MIT on the hub; the IAM database itself is for non-commercial research after registration",
        note="2,915 lines, 74 MB; --include 'data/validation.parquet' for the other split",
    ),
    DataSet(
        id="dp_bench",
        repo="upstage/dp-bench",
        patterns=("dataset/reference.json", "dataset/pdfs/*.pdf"),
        licence="MIT",
        note="200 pages",
    ),
    DataSet(
        id="fox",
        repo="ucaslcl/Fox_benchmark_data",
        patterns=("focus_benchmark_test.zip",),
        licence="CC-BY-NC-4.0, research only",
        note="944 images in one zip, read as it is",
    ),
    DataSet(
        id="olmocr_bench",
        repo="allenai/olmOCR-bench",
        patterns=("bench_data/*.jsonl", "bench_data/pdfs/*"),
        note="1,403 pages",
    ),
)


def known_sets() -> dict[str, DataSet]:
    """All data sets by id."""
    return {item.id: item for item in _KNOWN}


def find_set(name: str, *, source: str = "") -> DataSet:
    """The data set of a benchmark (`id` or `id@version`), or any repository of the hub as OWNER/NAME.

    Raises UsageError for an unknown name or source.
    """
    ident = name.partition("@")[0]
    if ident.count("/") == 1 and all(ident.split("/")):
        return DataSet(id=ident.replace("/", "--"), repo=ident)
    known = known_sets()
    if ident not in known:
        raise UsageError(f"no data set {name!r}{did_you_mean(ident, known)}", hint="loupe data list")
    found = known[ident]
    if not source:
        return found
    if source not in found.sources:
        there = ", ".join(found.sources) or "none"
        raise UsageError(f"{ident} has no source {source!r} (there: {there})", hint="docs/data.md lists them")
    return replace(found.sources[source], licence=found.licence)

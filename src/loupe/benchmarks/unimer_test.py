"""UniMER-Test: images of formulas to LaTeX, by edit distance, corpus BLEU and exact match, in four subsets."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from loupe.benchmarks.shared.formula_images import (
    CdmOutcome,
    Profile,
    Switch,
    cdm_outcomes,
    cdm_tools,
    cdm_warnings,
    prepare_formulas,
    profile_of,
    wants_cdm,
    with_cdm,
)
from loupe.data.hub.store import default_root
from loupe.data.packed import open_zip, read_member
from loupe.data.parquet import find_shards, rows
from loupe.data.prepared import is_prepared, read
from loupe.errors import DatasetError
from loupe.explanation import Explanation
from loupe.files.foreign import decode_text, read_data
from loupe.metrics import (
    bleu_counts,
    bleu_of_sums,
    normalize_latex_like_unimernet,
    normalized_edit_distance,
    strip_formula_wrapping,
)
from loupe.typed import convert
from loupe.types import (
    Benchmark,
    Conclusion,
    DataSet,
    Measure,
    PackedImage,
    PageSource,
    ParityCases,
    Prediction,
    Sample,
    SampleScores,
    Score,
    Scored,
)

Subset: TypeAlias = Literal["all", "spe", "cpe", "sce", "hwe"]
Source: TypeAlias = Literal["published", "parquet"]

#: What is not as in the official script, and why; docs/benchmarks/unimer_test.md.
DEVIATIONS = ("BLEU of empty predictions or references, where the official metric divides by zero, is 0",)
#: The version of CDM that UniMERNet's own evaluation uses.
_CDM: Profile = "unimernet"
#: A longer answer is not kept for the report to draw.
_KEPT = 20_000


def load(
    root: Path | None,
    subset: Subset = "all",
    cdm: Switch = "on",
    cdm_profile: Profile = _CDM,
    source: Source = "published",
) -> Iterator[Sample]:
    """Yield the formulas, subset by subset, in file order.

    `source=parquet` reads the copy in parquet (`loupe data get unimer_test --source parquet`): the same formulas in
    another order, without the names of the subsets.
    `cdm=off` leaves CDM out. `cdm_profile=omnidocbench` is the version of CDM that OmniDocBench uses.
    """
    samples = read_formulas(default_root("unimer_test") if root is None else root, subset, source)
    return (with_cdm(sample, cdm, cdm_profile) for sample in samples)


def score(sample: Sample, prediction: Prediction) -> Scored:
    """The official measures, the same with the wrapping of the answer removed, and an edit distance with blanks.

    CDM compares the normalised formulas, as upstream does; a pair whose ground truth is not drawn has no CDM.
    """
    counts, details = text_counts(sample, prediction), {}
    if wants_cdm(sample, default="on"):
        pairs, profile = _pairs(sample, prediction), profile_of(sample, _CDM)
        outcome, of_bare = cdm_outcomes(pairs, profile=profile)
        counts |= _cdm_counts(outcome) | {f"{name}_unwrapped": each for name, each in _cdm_counts(of_bare).items()}
        details = {"cdm": msgspec.to_builtins(outcome), "cdm_profile": profile}
        if pairs[1] != pairs[0]:
            details |= {"cdm_unwrapped": msgspec.to_builtins(of_bare)}
        compared = pairs[0][0].encode("utf-8", "replace").decode()  # files have no lone surrogates
        details |= {"compared": compared} if len(compared) <= _KEPT else {}
    return Scored(scores=[Score(measure=name, counts=each) for name, each in counts.items()], details=details)


def text_counts(sample: Sample, prediction: Prediction) -> dict[str, tuple[float, ...]]:
    """The counts of every measure that compares the text, and not what is drawn."""
    (whole, reference), (bare, _) = _pairs(sample, prediction)
    official = _score(whole, reference)
    unwrapped = official if bare == whole else _score(bare, reference)
    plain = normalized_edit_distance(strip_dollars(prediction.text), sample.truth.strip())
    return (
        official
        | {f"{name}_unwrapped": counts for name, counts in unwrapped.items()}
        | {"edit_distance_with_blanks": (plain, 1.0)}
    )


def prepare(pairs: Sequence[tuple[Sample, Prediction]]) -> None:
    """Draw all formulas of these samples and answers at once."""
    drawn = [pair for pair in pairs if wants_cdm(pair[0], default="on")]
    for profile in get_args(Profile):
        same = [pair for pair in drawn if profile_of(pair[0], _CDM) == profile]
        both = [pair for sample, prediction in same for pair in _pairs(sample, prediction)]
        if both:
            prepare_formulas(both, profile=profile)


def conclude(rows: Sequence[SampleScores]) -> Conclusion:
    """`figures`: CDM as upstream prints it, rounded; warnings about formulas that are not drawn."""
    outcomes = {row.sample: convert(row.details["cdm"], CdmOutcome) for row in rows if "cdm" in row.details}
    values = [outcome.f1 for outcome in outcomes.values() if outcome.counted and outcome.f1 is not None]
    profile = next((row.details["cdm_profile"] for row in rows if "cdm_profile" in row.details), _CDM)
    figures: dict[str, Any] = {"cdm_profile": profile} if outcomes else {}
    if values:
        figures |= {
            "mean_score": round(sum(values) / len(values), 3),
            "exp_rate": round(sum(value == 1 for value in values) / len(values), 3),
        }
    # Of answers that were wrapped; a ground truth that is not drawn has been told of.
    bare = {row.sample: row.details["cdm_unwrapped"] for row in rows if "cdm_unwrapped" in row.details}
    of_bare = {name: each for name, each in bare.items() if each["counted"] and each["f1"] is not None}
    warnings = cdm_warnings(outcomes, profile=profile)
    warnings += cdm_warnings(of_bare, profile=profile, measure="CDM of unwrapped answers")
    failed = next((outcome.failure for outcome in outcomes.values() if outcome.f1 is None and outcome.failure), "")
    reason = failed if outcomes else "CDM is switched off (-o cdm=off)"
    absent = {each.name: reason for each in benchmark.measures if each.name.startswith("cdm")} if reason else {}
    return Conclusion(figures=figures, warnings=warnings, not_computed=absent)


def explain(sample: Sample, scores: SampleScores) -> Explanation | None:
    """Return what CDM compared, for the report to draw."""
    from loupe.benchmarks.shared.formula_images import explain_formula

    reference = normalize_latex_like_unimernet(sample.truth)
    return explain_formula(sample, scores, reference=reference, profile=profile_of(sample, _CDM))


def _pairs(sample: Sample, prediction: Prediction) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the pairs that are compared: the normalised prediction, with its wrapping and without it, and the
    normalised reference.
    """
    reference = normalize_latex_like_unimernet(sample.truth)
    bare = strip_formula_wrapping(prediction.text)
    return (
        (normalize_latex_like_unimernet(prediction.text), reference),
        (normalize_latex_like_unimernet(bare), reference),
    )


def _cdm_counts(outcome: CdmOutcome) -> dict[str, tuple[float, ...]]:
    if outcome.f1 is None or not outcome.counted:
        return {}
    return {"cdm": (outcome.f1, 1.0), "cdm_exprate": (float(outcome.f1 == 1.0), 1.0)}


def _score(prediction: str, reference: str) -> dict[str, tuple[float, ...]]:
    return {
        "edit_distance": (normalized_edit_distance(prediction, reference), 1.0),
        "bleu": bleu_counts(prediction, reference),
        "exprate": (float(prediction == reference), 1.0),
    }


def strip_dollars(text: str) -> str:
    """Outer blanks and dollar signs removed, and nothing else; inner blanks stay."""
    return text.strip().strip("$").strip()


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """Pairs of (ours, official) for one shipped parity case: a formula, or a corpus of them."""
    pairs = case["input"].get("pairs", [case["input"]])
    scores = [
        _score(normalize_latex_like_unimernet(pair["pred"]), normalize_latex_like_unimernet(pair["gt"]))
        for pair in pairs
    ]
    expected = case["expected"]
    bleu = bleu_of_sums([sum(column) for column in zip(*(each["bleu"] for each in scores), strict=True)])
    return [
        (sum(each["edit_distance"][0] for each in scores) / len(scores), expected["edit_distance"]),
        (sum(each["exprate"][0] for each in scores) / len(scores), expected["exprate"]),
        (float(bleu), expected["bleu"]),
    ]


def _oracle_formula(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    expected = case["expected"]
    bleu = expected["bleu_single"].get("bleu", 0.0)
    yield case | {"expected": {"edit_distance": expected["edit"], "exprate": float(expected["exact"]), "bleu": bleu}}


def _oracle_corpus(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    expected = case["expected"]
    names = {"edit_distance": expected["edit_mean"], "exprate": expected["exact_rate"]}
    yield case | {"expected": names | {"bleu": expected["corpus"].get("bleu", 0.0)}}


def _measures(suffix: str = "", note: str = "") -> tuple[Measure, ...]:
    return (
        Measure(name=f"edit_distance{suffix}", title=f"edit distance{note}", higher_is_better=False),
        Measure(name=f"bleu{suffix}", title=f"BLEU{note}", value=bleu_of_sums),
        Measure(name=f"exprate{suffix}", title=f"exactly right{note}"),
        Measure(name=f"cdm{suffix}", title=f"CDM F1{note}"),
        Measure(name=f"cdm_exprate{suffix}", title=f"CDM exactly right{note}"),
    )


def _tools() -> dict[str, str]:
    other = cdm_tools("omnidocbench")
    return cdm_tools(_CDM) | {f"{name} (omnidocbench)": version for name, version in other.items()}


#: What the folder of the copy in parquet is called beside that of the published files.
PARQUET = "-parquet"


benchmark = Benchmark(
    title="UniMER-Test",
    version="1.0",
    task="formula",
    paper="https://arxiv.org/abs/2404.15254",
    data=DataSet(
        repo="wanderkid/UniMER_Dataset",
        patterns=("UniMER-Test.zip",),
        unpack=("*.zip",),
        note="23,757 formulas",
        sources={
            "parquet": DataSet(
                repo="deepcopy/UniMER", patterns=("*test*.parquet",), folder=f"unimer_test{PARQUET}", note="a copy"
            )
        },
    ),
    parity=ParityCases(
        compare=verify_case,
        deviations=DEVIATIONS,
        oracles={"unimer/cases.jsonl": _oracle_formula, "unimer/corpus_cases.jsonl": _oracle_corpus},
    ),
    prompt="Convert this mathematical expression to LaTeX. Output ONLY the LaTeX code, nothing else.",
    max_tokens=1024,
    measures=(
        *_measures(),
        *_measures("_unwrapped", ", without fences and $"),
        Measure(name="edit_distance_with_blanks", title="edit distance, blanks kept", higher_is_better=False),
    ),
    load=load,
    score=score,
    prepare=prepare,
    conclude=conclude,
    explain=explain,
    tools=_tools,
)


#: Simple printed, complex printed, screen capture, handwritten; in the order of the official script.
SUBSETS = ("spe", "cpe", "sce", "hwe")
_FOLDER = "UniMER-Test"
_LAYOUT = (
    f"{_FOLDER}/ (or {_FOLDER}.zip) with spe.txt, cpe.txt, sce.txt, hwe.txt and folders spe/, cpe/, sce/, hwe/ of "
    "0000000.png and so on; or data/test-*.parquet with image and text; or the prepared form (metadata.jsonl)"
)


def read_formulas(folder: Path, subset: str, source: str) -> Iterator[Sample]:
    """Return the formulas of a subset, or of all of them, subset by subset, in file order.

    `source="parquet"` reads the copy in parquet, whose rows are in another order, also beside the published files.
    """
    if is_prepared(folder):
        return _chosen(_prepared(folder), subset)
    tree = _find_tree(folder) if source == "published" else None
    if tree:
        return _of_tree(tree, [name for name in SUBSETS if subset in ("all", name)])
    beside = folder.with_name(f"{folder.name}{PARQUET}")
    shards = find_shards(folder, "test") or (find_shards(beside, "test") if source == "parquet" else [])
    if shards and subset != "all":
        raise DatasetError(f"{folder}: parquet copies of UniMER-Test do not name the subsets", hint=_LAYOUT)
    if shards:
        return _parquet(shards)
    if source == "parquet":
        hint = "download it: loupe data get unimer_test --source parquet"
        raise DatasetError(f"{folder}: no parquet copy of UniMER-Test here", hint=hint)
    raise DatasetError(
        f"{folder}: no UniMER-Test here; expected {_LAYOUT}", hint="download it: loupe data get unimer_test"
    )


@dataclass(frozen=True, slots=True)
class _Tree:
    """The published layout, in a folder or in a zip: what it is called, its files, and how to get at them."""

    path: Path
    names: Callable[[str], set[str]]
    read: Callable[[str], bytes]
    image: Callable[[str], PageSource]


def _find_tree(root: Path) -> _Tree | None:
    """The first folder with labels, at most two below `root`, else a zip."""
    deeper = (path.parent for pattern in ("*/spe.txt", "*/*/spe.txt") for path in sorted(root.glob(pattern)))
    for folder in (root, root / _FOLDER, *deeper):
        if any((folder / f"{name}.txt").is_file() for name in SUBSETS):
            return _folder_tree(folder)
    archives = [root] if root.suffix == ".zip" else sorted(root.glob(f"*{_FOLDER}*.zip"))
    return _zip_tree(archives[0]) if archives else None


def _folder_tree(folder: Path) -> _Tree:
    def names(subset: str) -> set[str]:
        return {path.name for path in (folder / subset).iterdir()} if (folder / subset).is_dir() else set()

    return _Tree(
        path=folder,
        names=names,
        read=lambda name: read_data(folder / name),
        image=lambda name: folder / name,
    )


def _zip_tree(path: Path) -> _Tree:
    archive = open_zip(path)
    members = archive.namelist()
    top = next((name[: -len("spe.txt")] for name in members if name.rpartition("/")[2] == "spe.txt"), None)
    if top is None:
        raise DatasetError(f"{path}: holds no spe.txt", hint=f"expected {_LAYOUT}")
    by_subset = {
        subset: {name.rpartition("/")[2] for name in members if name.startswith(f"{top}{subset}/")} - {""}
        for subset in SUBSETS
    }
    return _Tree(
        path=path,
        names=lambda subset: by_subset[subset],
        read=lambda name: read_member(archive, f"{top}{name}"),
        image=lambda name: PackedImage(path, f"{top}{name}"),
    )


def _of_tree(tree: _Tree, subsets: Sequence[str]) -> Iterator[Sample]:
    """The formulas of these subsets. Where no image of any is here, those of all labels: scoring needs no images."""
    images = {subset: {name for name in tree.names(subset) if not name.startswith(".")} for subset in subsets}
    without = [subset for subset in subsets if not images[subset]]
    # Of a zip nobody would take the images out: there they are missing by mistake.
    if without and (len(without) < len(subsets) or not tree.path.is_dir()):
        here = next((subset for subset in subsets if images[subset]), "")
        alone = f"-o subset={here} reads one subset alone; " if here else ""
        raise DatasetError(
            f"{tree.path}: no images in {', '.join(f'{subset}/' for subset in without)}",
            hint=f"{alone}expected {_LAYOUT}",
        )
    for subset in subsets:
        yield from _labelled(tree, subset) if without else _subset(tree, subset, images[subset])


def _labelled(tree: _Tree, subset: str) -> Iterator[Sample]:
    for index, label in enumerate(_labels(tree, subset)):
        if label:
            yield _sample(tree, subset, index, label)


def _sample(tree: _Tree, subset: str, index: int, label: str) -> Sample:
    image = tree.image(f"{subset}/{index:07d}.png")
    return Sample(id=f"{subset}_{index:07d}", images=(image,), truth=label, tags={"subset": subset})


def _subset(tree: _Tree, subset: str, images: set[str]) -> Iterator[Sample]:
    """Pair labels with images by number, as the official script does: a label without an image is no sample."""
    for index, label in enumerate(_labels(tree, subset)):
        name = f"{index:07d}.png"
        if label and name in images:
            images.remove(name)
            yield _sample(tree, subset, index, label)
    if images:
        raise DatasetError(
            f"{tree.path}: {len(images)} files in {subset}/ have no label in {subset}.txt, such as {min(images)}",
            hint=f"line i (from 0) belongs to the image with the number i in 7 digits; expected {_LAYOUT}",
        )


def _is_there(tree: _Tree, subset: str) -> bool:
    try:
        return bool(tree.read(f"{subset}.txt"))
    except (OSError, KeyError):
        return False


def _labels(tree: _Tree, subset: str) -> list[str]:
    """Lines as Python reads files: only \\n, \\r and \\r\\n end one, not the other separators of Unicode."""
    try:
        text = decode_text(tree.read(f"{subset}.txt"))
    except (OSError, KeyError):
        others = [name for name in SUBSETS if name != subset and _is_there(tree, name)]
        alone = f"-o subset={others[0]} reads one subset alone; " if others else ""
        raise DatasetError(f"{tree.path}: {subset}.txt cannot be read", hint=f"{alone}expected {_LAYOUT}") from None
    except UnicodeDecodeError:
        raise DatasetError(
            f"{tree.path}: {subset}.txt is not UTF-8", hint="check the files: loupe data verify"
        ) from None
    return [line.strip() for line in io.StringIO(text, newline=None)]


def _parquet(shards: list[Path]) -> Iterator[Sample]:
    for index, row in enumerate(rows(shards, ("text",))):
        yield Sample(id=f"unimernet_{index}", images=(row.image(),), truth=str(row["text"]).strip())


def _prepared(root: Path) -> Iterator[Sample]:
    for row in read(root):
        facts = {**row.metadata, **(row.metadata.get("tags") or {})}
        named = str(facts.get("subset") or facts.get("category") or "").lower()
        tags = {"subset": named} if named in SUBSETS else {}
        yield Sample(id=row.sample_id, images=(row.image,), truth=str(row.ground_truth).strip(), tags=tags)


def _chosen(samples: Iterator[Sample], subset: str) -> Iterator[Sample]:
    return (sample for sample in samples if subset in ("all", sample.tags.get("subset")))

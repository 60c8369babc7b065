"""UniMER-Test: images of formulas to LaTeX, by edit distance, corpus BLEU and exact match, in four subsets.

Paper: Wang et al., "UniMERNet", 2024. Protocol: docs/benchmarks/unimer_test.md. Official scorer: `test.py` of
opendatalab/UniMERNet @ 5a2c80d9, with the BLEU of Hugging Face `evaluate`.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from loupe.benchmarks.formula_images.cdm_scores import (
    CdmOutcome,
    cdm_outcomes,
    cdm_tools,
    cdm_warnings,
    prepare_formulas,
)
from loupe.data.parquet import find_shards, rows
from loupe.data.prepared import is_prepared, read
from loupe.data.store import default_root
from loupe.errors import DatasetError
from loupe.metrics import (
    bleu_counts,
    bleu_of_sums,
    normalize_latex_like_unimernet,
    normalized_edit_distance,
    strip_formula_wrapping,
)
from loupe.types import (
    Benchmark,
    Conclusion,
    Measure,
    PackedImage,
    PageSource,
    Prediction,
    Sample,
    SampleScores,
    Score,
    Scored,
)

Subset: TypeAlias = Literal["all", "spe", "cpe", "sce", "hwe"]

#: Simple printed, complex printed, screen capture, handwritten; in the order of the official script.
SUBSETS = ("spe", "cpe", "sce", "hwe")
#: What is not as in the official script, and why; docs/benchmarks/unimer_test.md.
DEVIATIONS = ("BLEU of empty predictions or references, where the official metric divides by zero, is 0",)
#: The version of CDM that UniMERNet's own evaluation uses.
_CDM = "unimernet"
_FOLDER = "UniMER-Test"
_LAYOUT = (
    f"{_FOLDER}/ (or {_FOLDER}.zip) with spe.txt, cpe.txt, sce.txt, hwe.txt and folders spe/, cpe/, sce/, hwe/ of "
    "0000000.png and so on; or data/test-*.parquet with image and text; or the prepared form (metadata.jsonl)"
)


def load(root: Path | None, subset: Subset = "all") -> Iterator[Sample]:
    """Yield the formulas, subset by subset, in file order. Copies in parquet do not tell the subsets apart."""
    folder = default_root("unimer_test") if root is None else root
    if is_prepared(folder):
        return _chosen(_prepared(folder), subset)
    tree = _find_tree(folder)
    if tree:
        return (sample for name in SUBSETS if subset in ("all", name) for sample in _subset(tree, name))
    shards = find_shards(folder, "test")
    if shards and subset != "all":
        raise DatasetError(f"{folder}: parquet copies of UniMER-Test do not name the subsets", hint=_LAYOUT)
    if shards:
        return _parquet(shards)
    raise DatasetError(f"{folder}: no UniMER-Test here; expected {_LAYOUT}", hint="loupe data get unimer_test")


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
        read=lambda name: (folder / name).read_bytes(),
        image=lambda name: folder / name,
    )


def _zip_tree(path: Path) -> _Tree:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise DatasetError(f"{path}: not a zip, or a broken one ({error})", hint="loupe data verify") from None
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
        read=lambda name: archive.read(f"{top}{name}"),
        image=lambda name: PackedImage(path, f"{top}{name}"),
    )


def _subset(tree: _Tree, subset: str) -> Iterator[Sample]:
    """Pair labels with images by number, as the official script does: a label without an image is no sample."""
    images = {name for name in tree.names(subset) if not name.startswith(".")}
    if not images:
        raise DatasetError(f"{tree.path}: no images in {subset}/", hint=f"expected {_LAYOUT}")
    for index, label in enumerate(_labels(tree, subset)):
        name = f"{index:07d}.png"
        if label and name in images:
            images.remove(name)
            yield Sample(
                id=f"{subset}_{index:07d}",
                images=(tree.image(f"{subset}/{name}"),),
                truth=label,
                tags={"subset": subset},
            )
    if images:
        raise DatasetError(
            f"{tree.path}: {len(images)} files in {subset}/ have no label in {subset}.txt, such as {min(images)}",
            hint=f"line i (from 0) belongs to the image with the number i in 7 digits; expected {_LAYOUT}",
        )


def _labels(tree: _Tree, subset: str) -> list[str]:
    """Lines as Python reads files: only \\n, \\r and \\r\\n end one, not the other separators of Unicode."""
    try:
        text = tree.read(f"{subset}.txt").decode("utf-8")
    except (OSError, KeyError):
        raise DatasetError(f"{tree.path}: {subset}.txt cannot be read", hint=f"expected {_LAYOUT}") from None
    except UnicodeDecodeError:
        raise DatasetError(f"{tree.path}: {subset}.txt is not UTF-8", hint="loupe data verify") from None
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


def _chosen(samples: Iterator[Sample], subset: Subset) -> Iterator[Sample]:
    return (sample for sample in samples if subset in ("all", sample.tags.get("subset")))


def score(sample: Sample, prediction: Prediction) -> Scored:
    """The official measures, the same with the wrapping of the answer removed, and the edit distance of request 000.

    CDM compares the normalised formulas, as upstream does; a pair whose ground truth is not drawn has no CDM.
    """
    outcome, of_bare = cdm_outcomes(_pairs(sample, prediction), profile=_CDM)
    counts = text_counts(sample, prediction)
    counts |= _cdm_counts(outcome) | {f"{name}_unwrapped": each for name, each in _cdm_counts(of_bare).items()}
    scores = [Score(measure=name, counts=each) for name, each in counts.items()]
    return Scored(scores=scores, details={"cdm": msgspec.to_builtins(outcome)})


def text_counts(sample: Sample, prediction: Prediction) -> dict[str, tuple[float, ...]]:
    """The counts of every measure that compares the text, and not what is drawn."""
    (whole, reference), (bare, _) = _pairs(sample, prediction)
    official = _score(whole, reference)
    unwrapped = official if bare == whole else _score(bare, reference)
    plain = normalized_edit_distance(prepare_like_request000(prediction.text), sample.truth.strip())
    return (
        official
        | {f"{name}_unwrapped": counts for name, counts in unwrapped.items()}
        | {"edit_distance_request000": (plain, 1.0)}
    )


def prepare(pairs: Sequence[tuple[Sample, Prediction]]) -> None:
    """Draw all formulas of these samples and answers at once."""
    sides = (side for sample, prediction in pairs for pair in _pairs(sample, prediction) for side in pair)
    prepare_formulas(sides, profile=_CDM)


def conclude(rows: Sequence[SampleScores]) -> Conclusion:
    """`figures`: CDM as upstream prints it, rounded; warnings about formulas that are not drawn."""
    outcomes = {row.sample: msgspec.convert(row.details["cdm"], CdmOutcome) for row in rows if "cdm" in row.details}
    values = [outcome.f1 for outcome in outcomes.values() if outcome.counted and outcome.f1 is not None]
    figures: dict[str, Any] = {"cdm_profile": _CDM}
    if values:
        figures |= {
            "mean_score": round(sum(values) / len(values), 3),
            "exp_rate": round(sum(value == 1 for value in values) / len(values), 3),
        }
    return Conclusion(figures=figures, warnings=cdm_warnings(outcomes, profile=_CDM))


def _pairs(sample: Sample, prediction: Prediction) -> tuple[tuple[str, str], tuple[str, str]]:
    """What is compared: the normalised prediction, with its wrapping and without it, and the normalised reference."""
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


def prepare_like_request000(text: str) -> str:
    """Outer blanks and dollar signs removed, and nothing else: how request document 000 prepares a prediction."""
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


def _measures(suffix: str = "", note: str = "") -> tuple[Measure, ...]:
    return (
        Measure(name=f"edit_distance{suffix}", title=f"edit distance{note}", higher_is_better=False),
        Measure(name=f"bleu{suffix}", title=f"BLEU{note}", value=bleu_of_sums),
        Measure(name=f"exprate{suffix}", title=f"exactly right{note}"),
        Measure(name=f"cdm{suffix}", title=f"CDM F1{note}"),
        Measure(name=f"cdm_exprate{suffix}", title=f"CDM exactly right{note}"),
    )


benchmark = Benchmark(
    title="UniMER-Test",
    version="1.0",
    task="formula",
    paper="https://arxiv.org/abs/2404.15254",
    hub="wanderkid/UniMER_Dataset",
    prompt="Convert this mathematical expression to LaTeX. Output ONLY the LaTeX code, nothing else.",
    max_tokens=1024,
    measures=(
        *_measures(),
        *_measures("_unwrapped", ", without fences and $"),
        Measure(name="edit_distance_request000", title="edit distance, blanks kept", higher_is_better=False),
    ),
    load=load,
    score=score,
    prepare=prepare,
    conclude=conclude,
    tools=lambda: cdm_tools(_CDM),
)

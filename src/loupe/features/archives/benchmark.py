"""A folder of transcripts, or one, as a benchmark: `loupe score GROUND_TRUTH ANSWERS`.

Rules: docs/protocols/archives.md. How to use it: docs/archives.md.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET

from loupe.errors import DatasetError, UsageError
from loupe.files.foreign import is_inside, plain_file, read_data, real_path
from loupe.metrics.edit import rate, rate_of_sums
from loupe.metrics.flexible_accuracy import bag_of_words_error
from loupe.metrics.text_profiles import PROFILES, Page, TextProfile, confusions
from loupe.transcripts.page import Hyphens, Level, PageText
from loupe.transcripts.pairing import ENDINGS, pair_names, stem_of
from loupe.transcripts.reading import as_text, dinglehopper_page, read_page_text, read_transcript
from loupe.transcripts.xml_source import MOST_BYTES
from loupe.types import (
    UNREADABLE,
    AnswerLayout,
    Benchmark,
    Conclusion,
    Measure,
    Prediction,
    Sample,
    SampleScores,
    Score,
    Scored,
)

Profile: TypeAlias = Literal["nfc", "nfkc", "historical", "dinglehopper", "dinglehopper-line", "isri", "jiwer"]

#: Files whose digests are remembered.
_MOST_FILES: Final = 1_000_000
#: Entries of a folder that are looked at before it counts as one without transcripts: it may be a whole disk.
_MOST_LOOKED_AT: Final = 20_000
#: Confusions that one page keeps, the most frequent first, and those that a result shows.
_KEPT: Final = 200
SHOWN: Final = 100
#: Endings of page images that may lie beside a transcript.
_IMAGES: Final = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
#: Files of folders that mean something else.
_OF_OTHERS: Final = ("samples.jsonl", "run.json")


def open_transcripts(path: Path) -> Benchmark | None:
    """The benchmark that a folder of transcripts is, or a single one; None if there are none."""
    if any((path / name).exists() for name in _OF_OTHERS):
        return None
    names = transcript_names(path)
    # Notes beside scans are no transcripts: such a folder is still to be set up.
    if not names or (path.is_dir() and not _has_markup(names) and _has_other_pages(path, names)):
        return None
    chosen = pair_names(names, names)
    return Benchmark(
        title=path.name,
        version="archives 1",
        task="text",
        measures=_MEASURES,
        further=_rate("missed_words", "missed words"),
        load=partial(_load, path, tuple(name for name, _ in chosen.pairs)),
        score=score,
        reference=reference_text,
        conclude=partial(conclude, chosen.passed_over),
        answers=AnswerLayout(read=partial(read_answers, path)),
    )


def transcript_names(path: Path) -> list[str]:
    """Names below a folder that are transcripts by their ending, sorted; of a file its own name.

    Hidden files, and links that lead out of the folder, are left out.
    """
    if path.is_file():
        return [path.name] if _is_transcript(path.name) else []
    found: list[str] = []
    looked_at = 0
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        looked_at += len(files) + 1
        if not found and looked_at > _MOST_LOOKED_AT:
            return []
        for name in files:
            file = Path(folder, name)
            if _is_transcript(name) and not name.startswith(".") and file.is_file() and is_inside(file, path):
                found.append(file.relative_to(path).as_posix())
    return sorted(found)


def _is_transcript(name: str) -> bool:
    return name.lower().removesuffix(".gz").endswith(ENDINGS)


def _has_markup(names: Iterable[str]) -> bool:
    return any(not name.lower().removesuffix(".gz").endswith((".txt", ".md")) for name in names)


def _has_other_pages(path: Path, names: Iterable[str]) -> bool:
    """True if pages lie in the folder and none of them has a transcript of its name."""
    pages = {file.stem for file in path.iterdir() if file.suffix.lower() in (*_IMAGES, ".pdf")}
    return bool(pages) and pages.isdisjoint(map(stem_of, names))


def _load(
    path: Path,
    names: Sequence[str],
    root: Path | None = None,
    profile: Profile = "nfc",
    level: Level = "line",
    hyphens: Hyphens = "keep",
    encoding: str = "",
) -> Iterator[Sample]:
    """Yield the pages of the ground truth, with the image that lies beside a file of one page.

    `profile` says how texts are compared, `level` which text of PAGE counts where several are there, `hyphens=join`
    puts words together that a line break divides, `encoding` is that of plain text that is not UTF-8. Raises
    DatasetError for a file that cannot be read, UsageError for a `root` (the folder is the data).
    """
    if root is not None:
        raise UsageError(f"{path.name}: a folder is its own data", hint="leave out --data")
    for name in names:
        file = _file(path, name)
        # The place is no part of the data: a copy of the folder is the same ground truth.
        scoring = {"profile": profile, "level": level, "hyphens": hyphens, "file": str(real_path(file))}
        found = plain_file(file).stat()
        digest, pages = _look_at(file, found.st_mtime_ns, found.st_size, encoding)
        truth = {"name": name, "sha256": digest}
        if encoding:
            truth["encoding"] = encoding
        beside = [file.parent / f"{stem_of(file.name)}{ending}" for ending in _IMAGES]
        # Scoring needs no page; a run says which one it would have read.
        image = next((each for each in beside if each.is_file()), beside[0])
        for number in range(pages):
            several = pages > 1
            yield Sample(
                id=f"{stem_of(name)}#page={number + 1}" if several else stem_of(name),
                truth=truth | ({"page": str(number)} if several else {}),
                group=stem_of(name) if several else "",
                images=() if several else (image,),
                scoring=scoring,
            )


@functools.lru_cache(maxsize=_MOST_FILES)
def _look_at(file: Path, changed: int, size: int, encoding: str) -> tuple[str, int]:
    """The digest of a file and its number of pages; samples are asked for more than once."""
    data = read_data(file, limit=MOST_BYTES)
    return hashlib.sha256(data).hexdigest(), len(_pages(file, data, encoding))


def _file(path: Path, name: str) -> Path:
    return path if path.is_file() else path / name


def _pages(
    file: Path, data: bytes, encoding: str = "", *, level: Level = "line", hyphens: Hyphens = "keep"
) -> list[PageText]:
    try:
        return read_transcript(data, file.name, encoding=encoding, level=level, hyphens=hyphens)[1]
    except DatasetError as error:
        raise DatasetError(f"{file}: {error.message}", hint=error.hint) from None


def read_answers(root: Path, path: Path, samples: Iterable[Sample]) -> Iterator[Prediction]:
    """Every transcript at `path` under the id of the page that it answers, or its name if it answers none.

    A file of one page is kept beside its text, so that every profile can read it.
    """
    ids: dict[str, list[str]] = {}
    encoding = ""
    for sample in samples:
        ids.setdefault(sample.truth["name"], []).append(sample.id)
        encoding = sample.truth.get("encoding", "")
    names = transcript_names(path)
    if len(ids) == len(names) == 1 and path.is_file() and root.is_file():
        pairs, left_over = [(next(iter(ids)), names[0])], []
    else:
        paired = pair_names(list(ids), names)
        pairs, left_over = list(paired.pairs), [*paired.prediction_only, *paired.passed_over]
    for wanted, name in pairs:
        yield from _answers_of_file(_file(path, name), ids[wanted], encoding)
    for name in left_over:
        yield Prediction(sample=name)


def _answers_of_file(file: Path, ids: Sequence[str], encoding: str) -> Iterator[Prediction]:
    try:
        data = read_data(file, limit=MOST_BYTES)
        pages = _pages(file, data, encoding)
        if len(pages) != len(ids):
            raise DatasetError(f"{file}: {len(pages)} pages, where the ground truth has {len(ids)}")
        source = as_text(data, file.name, encoding) if len(pages) == 1 else UNSET
    except DatasetError as error:
        for ident in ids:
            yield Prediction(sample=ident, outcome="error", error=error.message, finish_reason=UNREADABLE)
        return
    for ident, page in zip(ids, pages, strict=True):
        yield Prediction(sample=ident, text=page.text, source=source, outcome="ok" if page.regions else "empty")


def score(sample: Sample, prediction: Prediction) -> Scored:
    """Count edits of characters and words under the profile of the sample; a failed prediction is an empty page."""
    profile = PROFILES[sample.scoring.get("profile", "nfc")]
    wanted, notes = _truth_page(sample, profile)
    found = _answer_page(prediction, sample, profile)
    units = profile.units(found), profile.units(wanted)
    characters, words = profile.errors(*units)
    scores = [Score(measure="cer", counts=characters)]
    scores.append(Score(measure="missed_words" if profile.name == "isri" else "wer", counts=words))
    for name, counts in (("cer_mean", characters), ("wer_mean", words)):
        if (counts[1] or not profile.endless or not counts[0]) and not (profile.name == "isri" and name == "wer_mean"):
            scores.append(Score(measure=name, counts=(rate(*counts), 1.0)))
    scores.append(Score(measure="bag_of_words", counts=bag_of_words_error(units[0].words, units[1].words)))
    if not prediction.failed:
        scores.append(Score(measure="cer_answered", counts=characters))
    found_confusions = confusions(units[0].characters, units[1].characters)
    return Scored(
        scores=scores,
        details={
            "profile": f"{profile.name} ({profile.version})",
            "confusions": _most_frequent(found_confusions.pairs),
            "confused_runs": _most_frequent(found_confusions.runs),
            **({"notes": list(notes)} if notes else {}),
        },
    )


def _most_frequent(counts: Counter[tuple[str, str]], most: int = _KEPT) -> list[tuple[str, str, int]]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(wanted, found, count) for (wanted, found), count in ordered[:most]]


def _truth_page(sample: Sample, profile: TextProfile) -> tuple[Page, tuple[str, ...]]:
    truth = sample.truth
    page = _truth(sample, **_options(sample))
    if profile.reading != "loupe" and "page" not in truth:
        data = read_data(Path(sample.scoring["file"]), limit=MOST_BYTES)
        source = as_text(data, truth["name"], truth.get("encoding", ""))
        return dinglehopper_page(source, profile.reading), page.notes
    return page.text, page.notes


def _answer_page(prediction: Prediction, sample: Sample, profile: TextProfile) -> Page:
    if prediction.failed:
        return ""
    source = prediction.source or prediction.text
    if profile.reading != "loupe":
        return dinglehopper_page(source, profile.reading)
    options = _options(sample)
    # The text of an answer that has a source was read from it, without options.
    return read_page_text(source, **options) if options or not prediction.source else prediction.text


def _options(sample: Sample) -> dict[str, Any]:
    """Options of the reading that differ from the usual ones."""
    usual = {"level": "line", "hyphens": "keep"}
    return {name: value for name in usual if (value := sample.scoring.get(name, usual[name])) != usual[name]}


def _truth(sample: Sample, **options: Any) -> PageText:
    truth = sample.truth
    pages = _read_truth(sample.scoring["file"], truth["sha256"], truth.get("encoding", ""), **options)
    return pages[int(truth.get("page", 0))]


@functools.lru_cache(maxsize=4)
def _read_truth(file: str, digest: str, encoding: str, **options: Any) -> list[PageText]:
    """The pages of a file of this digest: a page is asked for to be scored, and by diagnostics."""
    return _pages(Path(file), read_data(Path(file), limit=MOST_BYTES), encoding, **options)


def reference_text(sample: Sample) -> str:
    """The ground truth of a page as text, by the rules of Loupe."""
    return _truth(sample).text


def conclude(passed_over: Sequence[str], scores: Sequence[SampleScores]) -> Conclusion:
    """Sum the confusions of all pages, and say what the readings of the ground truth left open.

    `passed_over`: files of the ground truth in whose place another one of the same page counts.
    """
    read_as: dict[str, object] = {}
    for name in ("confusions", "confused_runs"):
        sums: Counter[tuple[str, str]] = Counter()
        for one in scores:
            for wanted, found, count in one.details.get(name, ()):
                sums[wanted, found] += count
        read_as[name] = {"in_all": sums.total(), "rows": _most_frequent(sums, SHOWN)}
    noted = [one for one in scores if one.details.get("notes")]
    warnings = []
    if passed_over:
        more = f" (and {len(passed_over) - 1:,} more)" * (len(passed_over) > 1)
        warnings.append(f"not read, because another file of the ground truth has this page: {passed_over[0]}{more}")
    if noted:
        warnings.append(
            f"{len(noted):,} of {len(scores):,} pages of the ground truth can be read in more than one way, such as "
            f"{noted[0].sample}: {noted[0].details['notes'][0]}"
        )
    return Conclusion(figures={"read_as": read_as}, warnings=warnings)


def _rate(name: str, title: str, value: Callable[..., object] | None = rate_of_sums) -> Measure:
    return Measure(name=name, title=title, higher_is_better=False, value=value)


_MEASURES: Final = (
    _rate("cer", "character error rate"),
    _rate("wer", "word error rate"),
    _rate("cer_mean", "character error rate, mean of pages", None),
    _rate("wer_mean", "word error rate, mean of pages", None),
    _rate("bag_of_words", "words wrong in any order", None),
    _rate("cer_answered", "character error rate of pages that were read"),
)

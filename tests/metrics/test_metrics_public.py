"""The public face of the metrics: what a stranger finds with `dir` and `help`, and gets from a first call."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import loupe
import loupe.metrics as metrics

FUNCTIONS = {name: found for name in metrics.__all__ if not inspect.isclass(found := getattr(metrics, name))}
RECORDS = {"AlignedPart", "CdmCharacter", "CdmResult", "EditCounts", "TableComparison", "VisionTokens"}
MODULES = sorted({function.__module__ for function in FUNCTIONS.values()} | {"loupe.metrics"})
TABLE = "<table><tr><th>Name</th></tr><tr><td>kitten</td></tr></table>"
#: Their examples need TeX or an extra, so doctest skips them.
NOT_HERE = {"cdm", "cdm_pairs", "meteor"}


def parameters(name: str) -> list[str]:
    return [*inspect.signature(FUNCTIONS[name]).parameters]


def test_only_functions_and_the_records_that_they_return_are_public() -> None:
    assert dir(metrics) == sorted(metrics.__all__)
    assert set(metrics.__all__) - set(FUNCTIONS) == RECORDS
    internal = {"Run", "Loop", "edit", "indel_distance", "insertion_counts", "rate", "split_words", "repetition"}
    assert not internal & set(dir(metrics))


def test_dir_of_loupe_shows_only_what_is_public_whatever_was_imported() -> None:
    code = "import loupe.api, loupe.types, loupe.cli.shared.top, loupe; print(*dir(loupe))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == sorted(loupe.__all__)
    assert not [name for name in found if isinstance(getattr(loupe, name), ModuleType) and name not in _PACKAGES]


_PACKAGES = {"benchmarks", "engines", "metrics", "report"}


def test_metrics_need_no_import_of_their_own() -> None:
    code = "import loupe; print(loupe.metrics.cer('recieve', 'receive'))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout[:5] == "0.285"
    )


@pytest.mark.parametrize("name", ["report", "benchmarks", "engines"])
def test_help_of_a_package_that_can_be_called_shows_the_function(name: str) -> None:
    shown = pydoc.plain(pydoc.render_doc(getattr(loupe, name)))
    function = getattr(importlib.import_module("loupe.api." + {"report": "comparing"}.get(name, "listing")), name)
    assert function.__doc__.strip().split("\n")[0][:60] in shown and f"Call: {name}(" in shown
    assert inspect.signature(getattr(loupe, name)) == inspect.signature(function)


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_help_says_what_a_stranger_needs(name: str) -> None:
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    assert ">>> " in text or name == "installed_wordnet", "an example"
    assert re.match(r"(Return|Count|Compare|Align|Divide|Turn|Remove) ", text), "a verb"
    assert len(text.split("\n")[0]) <= 112, "one line"
    if parameters(name)[:1] == ["prediction"] and inspect.signature(FUNCTIONS[name]).return_annotation == "float":
        assert re.search(r"[Hh]igher|[Ll]ower|As `teds`", text), "the direction"
        assert re.search(r"Range 0|At most 1|Return 1|1 − `|As `teds`", text), "the range"


def test_the_prediction_comes_first_and_has_one_name_everywhere() -> None:
    pairs = {name: parameters(name)[:2] for name in FUNCTIONS if any("refer" in one for one in parameters(name))}
    assert len(pairs) >= 25
    orders = (["prediction", "reference"], ["prediction", "references"], ["predictions", "references"])
    assert {name: pair for name, pair in pairs.items() if pair not in orders} == {}


_WRONG = [None, b"a", 3, 1.5, {"a": "b"}, Path("a"), [1], [None]]


def calls(name: str) -> list[tuple[str, Callable[[Any], object]]]:
    """A call for each argument that is a text, or several: what is passed stands there alone."""
    function, names = FUNCTIONS[name], parameters(name)
    right: dict[str, Any] = {"text": "a", "prediction": "a", "reference": "a", "references": ["a"]}
    right |= {"predictions": ["a"], "pairs": [("a", "a")]}
    wanted = [one for one in names if one in right]
    base = {one: right[one] for one in wanted}
    return [(one, lambda value, one=one: function(**base | {one: value})) for one in wanted]


@pytest.mark.parametrize("value", _WRONG, ids=repr)
@pytest.mark.parametrize("name", sorted(name for name in FUNCTIONS if calls(name)))
def test_a_wrong_type_is_refused_by_the_name_of_its_argument(name: str, value: object) -> None:
    for argument, call in calls(name):
        with pytest.raises(TypeError, match=rf"\b{argument}\b.* (must be|and)"):
            call(value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: metrics.cer(None, "a"), "prediction must be a text (str), not None"),  # type: ignore[arg-type]
        (lambda: metrics.cer(b"a", "a"), "prediction must be a text (str), not bytes: decode it first"),  # type: ignore[arg-type]
        (lambda: metrics.cer("a", Path("a.txt")), "reference must be a text (str), not PosixPath: read the file first"),  # type: ignore[arg-type]
        (lambda: metrics.cer(["a", None], ["a", "b"]), "prediction[1] must be a text (str), not None"),  # type: ignore[list-item]
        (lambda: metrics.wer("a", ["a"]), "prediction and reference must be two texts (str), or two lists of texts"),
        (lambda: metrics.levenshtein_distance(["a"], "a"), "prediction must be a text (str), not list"),  # type: ignore[arg-type]
        (lambda: metrics.teds([TABLE], TABLE), "prediction must be a text (str), not list"),  # type: ignore[arg-type]
        (lambda: metrics.relaxed_accuracy(1950, "1950"), "prediction must be a text (str), not int"),  # type: ignore[arg-type]
        (
            lambda: metrics.anls(["Hello World", "bye"], "hello"),  # type: ignore[arg-type]
            "prediction and references are swapped: the prediction comes first, and is one text",
        ),
        (lambda: metrics.vqa_accuracy("a", "a"), "references must be a list of several people's answers, not str"),
        (lambda: metrics.corpus_bleu([["a"]], ["a"]), "predictions[0] must be a text (str), not list"),  # type: ignore[list-item]
        (lambda: metrics.vision_tokens("base", 10), "width must be a whole number, not str"),  # type: ignore[arg-type]
        (lambda: metrics.cdm_pairs("a", "b"), "cdm_pairs() takes 1 positional argument"),  # type: ignore[misc]
        (lambda: metrics.cdm_pairs(["a"]), "pairs[0] must be (prediction, reference), not str"),  # type: ignore[list-item]
    ],
)
def test_what_is_wrong_is_said(call: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).startswith(said)


def test_columns_of_a_data_frame_and_any_iterable_are_lists() -> None:
    import numpy as np

    column = np.array(["recieve", "ok"])
    assert (
        metrics.cer(column, np.array(["receive", "ok"])) == metrics.cer(["recieve", "ok"], ["receive", "ok"]) == 2 / 9
    )
    assert metrics.cer((text for text in "ab"), ("a", "b")) == 0.0
    assert metrics.anls("hello", ("Hello",)) == metrics.exact_match("hello", column) + 1 == 1.0
    assert metrics.corpus_bleu(column, column, max_order=1) == 1.0


def test_the_first_call_gives_the_answer_that_one_expects() -> None:
    sentence = "the cat sat on the mat"
    assert metrics.teds(TABLE, TABLE) == metrics.teds_struct(TABLE, TABLE) == 1.0
    assert metrics.sentence_bleu(sentence, sentence) == metrics.corpus_bleu(sentence, sentence) == 1.0
    assert metrics.sentence_bleu(sentence, sentence.replace("mat", "rug")) == pytest.approx(
        metrics.sentence_bleu(sentence.split(), sentence.replace("mat", "rug").split())
    )
    assert metrics.corpus_bleu(sentence, ["a dog", sentence]) == metrics.corpus_bleu([sentence], [["a dog", sentence]])
    assert metrics.corpus_bleu(sentence, [["a dog", sentence]]) == 1.0
    [before, part, after] = metrics.align(sentence, sentence.replace("cat", "dog"), unit="word")
    assert (part.kind, part.prediction, part.reference) == ("replace", "cat", "dog")
    assert before.prediction + part.reference + after.reference == sentence.replace("cat", "dog")
    changed = [part for part in metrics.align("recieve", "receive") if part.kind != "equal"]
    assert metrics.cer("recieve", "receive") * 7 == sum(max(len(p.prediction), len(p.reference)) for p in changed)
    with pytest.raises(ValueError, match="no unit 'line': character or word"):
        metrics.align("a", "a", unit="line")  # type: ignore[arg-type]


def test_meteor_splits_texts_into_words() -> None:
    pytest.importorskip("nltk")
    text, other = "the cat sat on the mat", "the cat sat on a mat"
    assert metrics.meteor(text, other) == metrics.meteor(text.split(), other.split()) > 0.5
    assert metrics.meteor(text, text) > 0.99

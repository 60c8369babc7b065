"""BLEU against Hugging Face `evaluate` and sacreBLEU, and METEOR's dictionary."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.errors import MissingToolError
from loupe.metrics import bleu_counts, bleu_of_sums, corpus_bleu, installed_wordnet, meteor, sentence_bleu, tokenize_13a
from tests.support.shared import cases

TOLERANCE = 1e-9
#: These tokenizers of sacreBLEU are not ours: no protocol here uses them.
NOT_OURS = ("zh", "intl")
TOKENIZERS = {"13a": tokenize_13a, "none": str.split, "char": lambda text: list("".join(text.split()))}

words = st.lists(st.sampled_from(["a", "b", "c", "x=1", "\\alpha", "3.14", "-", "中文"]), max_size=12).map(" ".join)


def near(value: float) -> Any:
    return pytest.approx(value, abs=TOLERANCE, rel=0)


def name(case: dict[str, Any]) -> str:
    return str(case["id"])


@pytest.mark.parametrize("case", cases("oracles/bleu/hf_evaluate_bleu.jsonl"), ids=name)
def test_corpus_bleu_is_that_of_hugging_face_evaluate_and_zero_where_it_divides_by_zero(case: dict[str, Any]) -> None:
    given = case["input"]
    expected = 0.0 if case["expected"] == "error:ZeroDivisionError" else case["expected"]["bleu"]
    assert corpus_bleu(given["predictions"], given["references"], **given["options"]) == near(expected)


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in cases("oracles/bleu/sacrebleu.jsonl")
        if case["input"]["options"].get("tokenize") not in NOT_OURS
    ],
    ids=name,
)
def test_counts_are_those_of_sacrebleu(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    tokenize = TOKENIZERS[given["options"].get("tokenize", "13a")]
    prepare = str.lower if given["options"].get("lowercase") else str
    streams = zip(*given["references"], strict=True)
    pairs = zip(given["hypotheses"], streams, strict=True)
    counts = [
        bleu_counts(prepare(found), [prepare(text) for text in wanted], tokenize=tokenize) for found, wanted in pairs
    ]
    sums = [sum(column) for column in zip(*counts, strict=True)]
    # Its smoothing "add-k" leaves what it adds in the counts of orders 2 to 4.
    added = [0, 1, 1, 1] if given["options"].get("smooth_method") == "add-k" else [0] * 4
    assert sums[:4] == [count - more for count, more in zip(expected["counts"], added, strict=True)]
    assert sums[4:8] == [count - more for count, more in zip(expected["totals"], added, strict=True)]
    assert sums[8] == expected["sys_len"]
    # Of several references sacreBLEU takes the length of the closest, `evaluate` that of the shortest.
    if len(given["references"]) == 1:
        assert sums[9] == expected["ref_len"]


def test_bleu_of_many_sums_is_the_bleu_of_each() -> None:
    sums = np.array([[5, 4, 3, 2, 6, 5, 4, 3, 6, 7], [0] * 10, [1, 0, 0, 0, 1, 0, 0, 0, 1, 1]])
    assert bleu_of_sums(sums).tolist() == [float(bleu_of_sums(row)) for row in sums]


def test_a_single_text_is_a_corpus_of_one() -> None:
    assert corpus_bleu("a b c d e", "a b c d f") == corpus_bleu(["a b c d e"], [["a b c d f"]])


def test_an_empty_corpus_has_no_bleu() -> None:
    assert corpus_bleu([], []) == 0.0


def test_lists_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 predictions for 1 references"):
        corpus_bleu(["a", "b"], ["a"])


@given(st.lists(st.tuples(words, words), min_size=1, max_size=5))
def test_bleu_is_a_fraction_and_one_only_for_equal_tokens(pairs: list[tuple[str, str]]) -> None:
    predictions, references = zip(*pairs, strict=True)
    value = corpus_bleu(predictions, references)
    assert 0.0 <= value <= 1.0
    if value == 1.0:
        assert [tokenize_13a(text) for text in predictions] == [tokenize_13a(text) for text in references]


@given(words, words)
def test_bleu_of_one_pair_is_that_of_a_textbook(prediction: str, reference: str) -> None:
    assert corpus_bleu(prediction, reference) == near(textbook(tokenize_13a(prediction), tokenize_13a(reference)))


def textbook(found: list[str], wanted: list[str]) -> float:
    """The definition, n-gram by n-gram, without counters."""
    product = 1.0
    for order in range(1, 5):
        left = [wanted[i : i + order] for i in range(len(wanted) - order + 1)]
        grams = [found[i : i + order] for i in range(len(found) - order + 1)]
        matched = 0
        for gram in grams:
            if gram in left:
                left.remove(gram)
                matched += 1
        if not matched:
            return 0.0
        product *= matched / len(grams)
    penalty = 1.0 if len(found) > len(wanted) else float(np.exp(1 - len(wanted) / len(found)))
    return float(product**0.25) * penalty


def test_short_equal_sentences_score_almost_nothing_as_in_nltk() -> None:
    assert sentence_bleu(["alpha", "beta"], ["alpha", "beta"]) == pytest.approx(1.491668146240062e-154, rel=1e-12)


def test_sentences_without_a_common_word_score_nothing() -> None:
    assert sentence_bleu(["a"], ["b"]) == 0.0
    assert sentence_bleu([], ["b"]) == 0.0


def test_meteor_counts_stems_and_without_a_dictionary_no_synonyms() -> None:
    pytest.importorskip("nltk")
    assert meteor(["running", "quickly"], ["run", "quick"]) > 0
    assert meteor(["car"], ["auto"]) == 0.0


def test_meteor_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nltk.translate.meteor_score", None)
    with pytest.raises(MissingToolError, match=r"^METEOR needs nltk, which is not installed") as caught:
        meteor(["a"], ["a"])
    assert (caught.value.hint, caught.value.exit_code) == ("install it: pip install nltk", 4)


def test_meteor_of_many_words_without_a_match_takes_no_quadratic_time() -> None:
    prediction, reference = ([f"{letter}{number}" for number in range(15_000)] for letter in "xy")
    start = time.process_time()
    assert meteor(prediction, reference) == 0.0
    assert time.process_time() - start < 10


def test_meteor_counts_synonyms_of_an_installed_wordnet() -> None:
    pytest.importorskip("nltk")
    wordnet = installed_wordnet()
    if wordnet is None:
        pytest.skip("SKIPPED: no WordNet here (apt install wordnet-base), so its synonyms are not checked")
    assert meteor(["car"], ["auto"], synonyms=wordnet) > 0
    assert {lemma.name() for synset in wordnet.synsets("cars") for lemma in synset.lemmas()} >= {"auto", "railcar"}
    assert wordnet.synsets("") == wordnet.synsets("a b") == wordnet.synsets("\udc80") == ()

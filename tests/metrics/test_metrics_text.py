"""Properties of the text metrics, and their agreement with textbook implementations written here."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.metrics import (
    align,
    anls,
    cer,
    character_errors,
    count_edits,
    docext_similarity,
    levenshtein_distance,
    max_normalized_similarity,
    mean_cer,
    mean_wer,
    normalized_edit_distance,
    normalized_edit_similarity,
    prepare_iam_punct,
    rate_of_sums,
    vlmevalkit_distance,
    vlmevalkit_similarity,
    wer,
    word_errors,
)
from loupe.metrics.edit import indel_distance, insertion_counts, normalized_indel_similarity, rate, split_words

# Few characters make near misses likely; among them NUL, a lone surrogate, and letters whose case folds oddly.
texts = st.text(st.sampled_from("aab  \n\t\0\ud800éß\u0130漢."), max_size=12) | st.text(max_size=12)
pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=5)


def textbook_distance(left: Sequence[str], right: Sequence[str], *, substitution: int = 1) -> int:
    """Wagner and Fischer (1974), as in the lecture."""

    @cache
    def cost(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        change = 0 if left[i - 1] == right[j - 1] else substitution
        return min(cost(i - 1, j) + 1, cost(i, j - 1) + 1, cost(i - 1, j - 1) + change)

    return cost(len(left), len(right))


@given(texts, texts)
def test_levenshtein_is_the_textbook_distance(a: str, b: str) -> None:
    assert levenshtein_distance(a, b) == textbook_distance(a, b)


@given(texts, texts)
def test_indel_is_the_textbook_distance_with_substitutions_at_two(a: str, b: str) -> None:
    assert indel_distance(a, b) == textbook_distance(a, b, substitution=2)


@given(texts, texts, texts)
def test_distances_are_metrics(a: str, b: str, c: str) -> None:
    for distance in (levenshtein_distance, indel_distance):
        assert distance(a, b) == distance(b, a)
        assert (distance(a, b) == 0) == (a == b)
        assert distance(a, c) <= distance(a, b) + distance(b, c)


@given(texts, texts)
def test_normalized_distance_is_a_symmetric_fraction_and_zero_only_for_equals(a: str, b: str) -> None:
    distance = normalized_edit_distance(a, b)
    assert 0.0 <= distance <= 1.0
    assert distance == normalized_edit_distance(b, a)
    assert (distance == 0.0) == (a == b)
    assert normalized_edit_similarity(a, b) == 1.0 - distance


@given(texts, texts)
def test_normalized_indel_similarity_is_twice_the_common_subsequence_over_both_lengths(a: str, b: str) -> None:
    similarity = normalized_indel_similarity(a, b)
    assert similarity == normalized_indel_similarity(b, a)
    common = (len(a) + len(b) - textbook_distance(a, b, substitution=2)) / 2
    assert similarity == pytest.approx(2 * common / (len(a) + len(b)) if a or b else 1.0)


@given(texts, texts)
def test_character_errors_count_the_stripped_texts(a: str, b: str) -> None:
    assert character_errors(a, b) == (textbook_distance(a.strip(), b.strip()), len(b.strip()))


@given(texts, texts)
def test_word_errors_count_the_words(a: str, b: str) -> None:
    assert word_errors(a, b) == (textbook_distance(split_words(a), split_words(b)), len(split_words(b)))


@given(texts)
def test_a_right_answer_has_no_errors(text: str) -> None:
    assert (cer(text, text), wer(text, text)) == (0.0, 0.0)


@given(texts)
def test_an_empty_answer_misses_everything(text: str) -> None:
    assert cer("", text) == (1.0 if text.strip() else 0.0)
    assert wer("", text) == (1.0 if split_words(text) else 0.0)


@given(pairs)
def test_corpus_rates_are_sums_over_sums(rows: list[tuple[str, str]]) -> None:
    predictions, references = [a for a, _ in rows], [b for _, b in rows]
    for errors, corpus in ((character_errors, cer), (word_errors, wer)):
        counts = [errors(a, b) for a, b in rows]
        assert corpus(predictions, references) == rate(sum(c[0] for c in counts), sum(c[1] for c in counts))


@given(pairs)
def test_mean_rates_are_means_of_the_rates_of_samples(rows: list[tuple[str, str]]) -> None:
    predictions, references = [a for a, _ in rows], [b for _, b in rows]
    assert mean_cer(predictions, references) == pytest.approx(np.mean([cer(a, b) for a, b in rows]))
    assert mean_wer(predictions, references) == pytest.approx(np.mean([wer(a, b) for a, b in rows]))


def test_the_mean_rate_of_no_samples_is_not_a_number() -> None:
    assert np.isnan(mean_cer([], []))
    assert cer([], []) == 0.0


def test_only_the_space_separates_words() -> None:
    assert split_words(" a\tb  c\nd \n e ") == ["a\tb", "c\nd", "e"]


def test_lists_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 predictions for 1 references"):
        cer(["a", "b"], ["a"])
    with pytest.raises(TypeError, match=r"two texts .* or two lists"):
        wer("a", ["a"])


def test_the_rate_without_a_reference_counts_insertions() -> None:
    assert (rate(0, 0), rate(3, 0), rate(1, 4)) == (0.0, 3.0, 0.25)
    sums = np.array([[0, 0], [3, 0], [1, 4]])
    assert rate_of_sums(sums).tolist() == [0.0, 3.0, 0.25]
    assert float(rate_of_sums(sums[2])) == 0.25


def test_iam_preparation_joins_closing_punctuation_and_leaves_quotes() -> None:
    assert prepare_iam_punct(' " We came ,  " he said ; ( so ) . ') == '" We came,  " he said; ( so).'


@given(texts)
def test_iam_preparation_is_idempotent_and_changes_white_space_alone(text: str) -> None:
    once = prepare_iam_punct(text)
    assert prepare_iam_punct(once) == once
    assert re.sub(r"\s", "", once) == re.sub(r"\s", "", text)


@given(texts, texts)
def test_docext_similarity_is_a_symmetric_fraction_and_one_only_for_equals(a: str, b: str) -> None:
    similarity = docext_similarity(a, b)
    assert 0.0 <= similarity <= 1.0
    assert similarity == docext_similarity(b, a)
    assert (similarity == 1.0) == (a == b)


@given(texts, texts)
def test_stripped_similarity_is_a_symmetric_fraction(a: str, b: str) -> None:
    similarity = max_normalized_similarity(a, b)
    assert 0.0 <= similarity <= 1.0
    assert similarity == max_normalized_similarity(b, a)
    assert max_normalized_similarity(a, a) == 1.0
    if a.strip() and b.strip():
        longest = max(len(a.strip()), len(b.strip()))
        assert similarity == pytest.approx(1 - textbook_distance(a.strip(), b.strip()) / longest)


@given(texts, texts)
def test_vlmevalkit_distance_is_the_textbook_formula(a: str, b: str) -> None:
    fold: Callable[[str], str] = lambda text: " ".join(text.strip().lower().split())  # noqa: E731
    longest = max(len(a.upper()), len(b.upper()))
    expected = textbook_distance(fold(a), fold(b)) / longest if longest else 0.0
    assert vlmevalkit_distance(a, b) == pytest.approx(expected)
    assert vlmevalkit_similarity(a, b) == pytest.approx(1 - expected)
    assert vlmevalkit_distance(a, b) == vlmevalkit_distance(b, a)


@given(texts, st.lists(texts, min_size=1, max_size=4))
def test_anls_is_the_best_reference_or_zero(a: str, references: list[str]) -> None:
    value = anls(a, references)
    assert value == 0.0 or 0.5 <= value <= 1.0
    assert value == max(anls(a, reference) for reference in references)
    assert anls(a, [*references, a]) == 1.0
    assert anls(a, references, threshold=0.0) >= value


def test_anls_keeps_exactly_one_half() -> None:
    assert anls("ab", "ax") == 0.5
    assert anls("abc", "axx") == 0.0


def test_anls_without_a_reference_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one reference"):
        anls("a", [])


@given(texts, texts)
def test_edit_counts_add_up_to_both_texts_and_to_the_distance(a: str, b: str) -> None:
    counts = count_edits(a, b)
    assert counts.hits + counts.substitutions + counts.deletions == len(b)
    assert counts.hits + counts.substitutions + counts.insertions == len(a)
    assert counts.substitutions + counts.deletions + counts.insertions == levenshtein_distance(a, b)


def test_insertions_are_characters_without_counterpart() -> None:
    assert insertion_counts("Total 12.00 Thank you!", "Total 12.00") == (11, 22)
    assert insertion_counts("Tota1", "Total") == (0, 5)
    assert insertion_counts("", "Total") == (0, 0)


@given(texts, texts)
def test_alignments_give_both_texts_back(a: str, b: str) -> None:
    for runs in (align(a, b), align(a, b, unit="word")):
        assert "".join(run.prediction for run in runs) == a
        assert "".join(run.reference for run in runs) == b
        assert all((run.prediction == run.reference) == (run.kind == "equal") for run in runs)
        assert all((run.reference == "") == (run.kind == "insert") for run in runs)
        assert all((run.prediction == "") == (run.kind == "delete") for run in runs)


def test_an_alignment_by_words_shows_the_word_that_differs() -> None:
    changed = [run for run in align("the quick brwn fox", "the quick brown fox", unit="word") if run.kind != "equal"]
    assert [(run.prediction, run.reference) for run in changed] == [("brwn", "brown")]


def test_an_alignment_by_words_takes_signs_of_spaceless_scripts_one_by_one() -> None:
    changed = [run for run in align("第三季度營业收入", "第三季度营业收入", unit="word") if run.kind != "equal"]
    assert [(run.prediction, run.reference) for run in changed] == [("營", "营")]


def test_a_megabyte_against_a_page_is_no_problem() -> None:
    long, page = "loop \ud800\0" * 150_000, "A page of text. " * 100
    assert character_errors(long, page)[1] == len(page.strip())
    assert word_errors(long, page)[1] == 400
    assert 0.0 <= normalized_edit_similarity(long, page) < 0.01
    assert insertion_counts(long, page)[0] >= len(long) - len(page)
    assert cer(long, long) == 0.0

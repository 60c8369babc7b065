"""Named profiles give exactly the numbers of dinglehopper, ISRI and jiwer, and of Loupe's own specification."""

from __future__ import annotations

import json
import math
import random
import unicodedata
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.metrics.dinglehopper import differences, normalize_segment, page_units, unit_errors
from loupe.metrics.flexible_accuracy import bag_of_words_error, flexible_counts
from loupe.metrics.isri import (
    class_counts,
    isri_character_errors,
    isri_confusions,
    isri_pieces,
    isri_text,
    isri_words,
    missed_words,
)
from loupe.metrics.segments import graphemes, is_word, word_pieces, word_pieces_unicode_8
from loupe.metrics.text_profiles import PROFILES, Units, confusions
from loupe.scoring.oracles import read_oracle
from loupe.transcripts.reading import as_text, dinglehopper_page
from tests.support.shared import shared


def oracle(name: str) -> list[dict[str, Any]]:
    """Cases of one file. Python's own reader: rates may be `Infinity`, which is no JSON."""
    return [json.loads(line) for line in read_oracle(f"archives/{name}.jsonl").splitlines()]


TEXTS = oracle("texts")


def endless_rate(counts: tuple[int, int]) -> float:
    edits, length = counts
    return 0 if not edits else math.inf if not length else edits / length


def of_file(text: str) -> Units:
    return PROFILES["dinglehopper"].units(dinglehopper_page(text, "dinglehopper-line"))


@pytest.mark.parametrize("name", ["nfc", "nfkc", "historical"])
def test_profiles_of_loupe_count_as_specified(name: str) -> None:
    profile = PROFILES[name]
    for case in TEXTS:
        characters, words = profile.errors(profile.units(case["ocr"]), profile.units(case["gt"]))
        assert {"cer": list(characters), "wer": list(words)} == case["expected"][name], case["id"]


def test_the_profile_jiwer_gives_its_rates() -> None:
    profile = PROFILES["jiwer"]
    for case in TEXTS:
        counts = profile.errors(profile.units(case["ocr"]), profile.units(case["gt"]))
        rates = [edits / length if length else edits for edits, length in counts]
        assert rates == [case["expected"]["jiwer"]["cer"], case["expected"]["jiwer"]["wer"]], case["id"]


def test_the_profile_dinglehopper_gives_its_rates_and_bag_of_words() -> None:
    for case in TEXTS:
        if "error" in (expected := case["expected"]["dinglehopper"]):
            assert any(normalize_segment(line)[1] for line in (case["gt"] + "\n" + case["ocr"]).split("\n"))
            continue
        found, wanted = of_file(case["ocr"]), of_file(case["gt"])
        characters, words = PROFILES["dinglehopper"].errors(found, wanted)
        assert (endless_rate(characters), characters[1]) == (expected["cer"], expected["n_characters"]), case["id"]
        assert (endless_rate(words), words[1]) == (expected["wer"], expected["n_words"]), case["id"]
        wrong, both = bag_of_words_error(found.words, wanted.words)
        assert (wrong / both if both else 0) == case["expected"]["bag_of_words"], case["id"]


def report(prediction: list[list[str]], reference: list[list[str]]) -> dict[str, Any]:
    found, wanted = page_units(prediction), page_units(reference)
    characters, words = (unit_errors(*sides) for sides in zip(found, wanted, strict=True))
    named = [
        {f"{one or 'None'} :: {other or 'None'}": count for (one, other), count in differences(*sides).items()}
        for sides in zip(found, wanted, strict=True)
    ]
    return {
        "cer": endless_rate(characters),
        "wer": endless_rate(words),
        "n_characters": characters[1],
        "n_words": words[1],
        "differences": {"character_level": named[0], "word_level": named[1]},
    }


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_report_of_dinglehopper_is_equal_to_the_last_difference(number: int) -> None:
    compared = 0
    for case in oracle(f"pages_{number}"):
        for key in ("dinglehopper_region", "dinglehopper_line", "dinglehopper"):
            if key not in case["expected"]:
                continue
            level = key.partition("_")[2] or "region"
            sides = [
                [case["expected"][side]["hocr_lines"]]
                if case[side]["format"] == "hocr"
                else dinglehopper_page(case[side]["data"], f"dinglehopper-{level}")
                for side in ("ocr", "gt")
            ]
            assert report(*sides) == case["expected"][key], (case["id"], key)
            compared += 1
    assert compared > 80


def test_dinglehoppers_own_test_files_give_its_numbers() -> None:
    folder = shared("oracles/archives")
    for line in (folder / "real.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        for level, expected in case["expected"].items():
            prediction, reference = (
                dinglehopper_page(as_text((folder / case[side]).read_bytes(), case[side]), f"dinglehopper-{level}")
                for side in ("ocr", "gt")
            )
            found = report(prediction, reference)
            for name in ("cer", "wer", "n_characters", "n_words"):
                assert found[name] == expected["report"][name], (case["id"], level, name)


def test_folders_of_lines_add_up_as_in_dinglehopper_line_dirs() -> None:
    for case in oracle("line_dirs"):
        expected = case["expected"]
        if "error" in expected or math.isnan(expected["cer"]):
            continue  # the tool has no figure
        sums = Counter[str]()
        for _, reference, prediction in case["files"]:
            found, wanted = of_file(prediction), of_file(reference)
            for name, counts in zip(("cer", "wer"), PROFILES["dinglehopper"].errors(found, wanted), strict=True):
                sums[name] += counts[0]
                sums[f"n_{name}"] += counts[1]
        assert sums["cer"] / sums["n_cer"] == pytest.approx(expected["cer"], abs=1e-9)
        assert sums["wer"] / sums["n_wer"] == pytest.approx(expected["wer"], abs=1e-9)
        assert (sums["n_cer"], sums["n_wer"]) == (expected["n_characters"], expected["n_words"])


def test_isri_accuracy_classes_confusions_and_words_are_equal() -> None:
    classes = [(first, last, name) for first, last, name in json.loads(read_oracle("archives/classes.json"))]
    for case in TEXTS:
        expected = case["expected"]["isri"]["accuracy"]
        prediction, reference = isri_text(case["ocr"]), isri_text(case["gt"])
        errors, characters = isri_character_errors(prediction, reference)
        assert (errors, characters) == (expected["errors"], expected["characters"]), case["id"]
        counts = class_counts(prediction, reference, classes)
        assert {name: list(pair) for name, pair in counts.items()} == expected["classes"], case["id"]
        confused = {f"{{{one}}}-{{{other}}}": n for (one, other), n in isri_confusions(prediction, reference).items()}
        assert confused == {name: count for count, name in expected["confusions"]}, case["id"]
        missed, words = missed_words(isri_words(prediction), isri_words(reference))
        of_words = case["expected"]["isri"]["wordacc"]
        assert (missed, words) == (of_words["missed"], of_words["words"]), case["id"]


def test_confusions_of_pairs_and_runs_are_counted_as_specified() -> None:
    texts, profile = {case["id"]: case for case in TEXTS}, PROFILES["nfc"]
    for case in oracle("confusions"):
        source = texts[case["id"]]
        found = confusions(profile.units(source["ocr"]).characters, profile.units(source["gt"]).characters)
        for counts, expected in ((found.pairs, case["expected"]["pairs"]), (found.runs, case["expected"]["runs"])):
            assert {(one, other): n for one, other, n in expected} == counts, case["id"]


def test_flexible_character_accuracy_has_the_counts_of_the_program() -> None:
    for case in oracle("fca"):
        counts = flexible_counts(case["ocr"], case["gt"])
        assert list(counts) == case["expected"]["match_replace_delete_insert"], case["id"]
        assert counts.accuracy == pytest.approx(case["expected"]["fca"], abs=1e-12)
    with pytest.raises(ValueError, match="more than 80 lines"):
        flexible_counts("a\n" * 81, "a")


def test_segments_of_any_script_are_those_of_unicode_16() -> None:
    for case in oracle("segments"):
        expected, text = case["expected"], case["text"]
        assert graphemes(text) == expected["graphemes"], case["id"]
        pieces = word_pieces(unicodedata.normalize("NFC", text))
        assert [piece for piece in pieces if is_word(piece)] == expected["words"], case["id"]
        assert normalize_segment(text)[0] == expected["normalized"], case["id"]


def test_segments_of_random_text_are_those_of_uniseg() -> None:
    from uniseg.graphemecluster import grapheme_clusters
    from uniseg.wordbreak import words

    dice = random.Random(5)
    pool = [chr(code) for code in range(32, 127, 4)] + list(
        "\r\n\x0b\u0308\u200d\u200c\u0600\u0903ᄀ가각ᅡᆨ🇩👩❤ⓜ©क्षत\u093cआアヲ_'\".,:;א״׳ת12٣ \u3000"
        "\u00ad\u2019\u00b7a\u30fc\U0001f3fb"
    )
    for _ in range(4_000):
        text = "".join(dice.choice(pool) for _ in range(dice.randint(1, 9)))
        assert graphemes(text) == list(grapheme_clusters(text)), ascii(text)
        assert word_pieces(text) == list(words(text)), ascii(text)


@given(st.text(max_size=40))
def test_segments_lose_nothing(text: str) -> None:
    assert "".join(graphemes(text)) == text
    assert "".join(word_pieces(text)) == text
    assert "".join(word_pieces_unicode_8(text)) == text


@given(st.text("ab~^ \n", max_size=30), st.text("ab~^ \n", max_size=30))
def test_isri_pieces_make_up_the_errors(prediction: str, reference: str) -> None:
    found, wanted = isri_text(prediction), isri_text(reference)
    errors, characters = isri_character_errors(found, wanted)
    assert errors == sum(piece.errors for piece in isri_pieces(found, wanted))
    assert errors >= 0 and characters == len(wanted) - wanted.count("~")


@given(st.text("abſ\u0364 \n中", max_size=30))
@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_text_has_no_error_against_itself(name: str, text: str) -> None:
    profile = PROFILES[name]
    units = profile.units(text)
    assert [errors for errors, _ in profile.errors(units, units)] == [0, 0]
    assert not confusions(units.characters, units.characters).pairs

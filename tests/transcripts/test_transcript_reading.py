"""Readings of PAGE, ALTO, hOCR and text equal the official tools' and the specification's, also for hostile files."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.errors import DatasetError
from loupe.metrics.dinglehopper import normalize_segment
from loupe.scoring.oracles import read_oracle
from loupe.transcripts.lines import pair_lines
from loupe.transcripts.page import Line, PageText, join_hyphens
from loupe.transcripts.pairing import mets_pages, pair_names
from loupe.transcripts.reading import as_text, dinglehopper_page, read_transcript
from loupe.transcripts.xml_source import parse_xml


def oracle(name: str) -> list[dict[str, Any]]:
    """Cases of one file. Python's own reader: rates may be `Infinity`, which is no JSON."""
    return [json.loads(line) for line in read_oracle(f"archives/{name}.jsonl").splitlines()]


PAGES = [case for number in (1, 2, 3) for case in oracle(f"pages_{number}")]


def as_lists(pages: list[PageText]) -> list[list[str]]:
    return [[line.text for line in region.lines] for page in pages for region in page.regions]


def read(side: dict[str, str]) -> list[PageText]:
    return read_transcript(side["data"].encode(), side["name"])[1]


def test_every_page_has_the_regions_and_lines_of_the_specification() -> None:
    differing = [
        (case["id"], side)
        for case in PAGES
        for side in ("gt", "ocr")
        if as_lists(read(case[side])) != case["expected"][side]["loupe"]
    ]
    assert differing == [] and len(PAGES) == 170


@pytest.mark.parametrize("level", ["region", "line"])
def test_every_page_has_the_text_that_dinglehopper_extracts(level: str) -> None:
    compared = 0
    for case in PAGES:
        for side in ("gt", "ocr"):
            source, expected = case[side], case["expected"][side]
            key = f"dinglehopper_{level}" if source["format"] == "page" else "dinglehopper"
            if source["format"] == "hocr" or key not in expected:
                continue
            segments = [
                [normalize_segment(segment)[0] for segment in region]
                for region in dinglehopper_page(
                    as_text(source["data"].encode(), source["name"]), f"dinglehopper-{level}"
                )
            ]
            kept = ["\n".join(region) for region in segments if any(region) or len(region) > 1]
            assert "\n".join(kept) == expected[key], (case["id"], side)
            compared += 1
    assert compared > 250


def made(case: dict[str, Any]) -> bytes:
    """The bytes of a hostile case; large ones are described, not stored."""
    if "data_base64" in case:
        return base64.b64decode(case["data_base64"])
    many = 20_000
    references = "".join(f'<RegionRefIndexed index="{many - n}" regionRef="r{n}"/>' for n in range(many))
    region = '<TextRegion id="r{0}"><TextLine><TextEquiv><Unicode>z{0}</Unicode></TextEquiv></TextLine></TextRegion>'
    recipes = {
        "ax58": lambda: b"<PcGts><Page>" + b"<TextRegion>" * 3000 + b"</TextRegion>" * 3000 + b"</Page></PcGts>",
        "ax59": lambda: gzip.compress(b" " * 300_000_000, 1),
        "ax60": lambda: b"<PcGts><Page>" + b"<TextRegion/>" * 6_200_000 + b"</Page></PcGts>",
        "ax61": lambda: (
            f"<PcGts><Page><ReadingOrder><OrderedGroup>{references}</OrderedGroup></ReadingOrder>"
            + "".join(region.format(n) for n in range(many))
            + "</Page></PcGts>"
        ).encode(),
        "ax62": lambda: b"a" * 3_000_000,
    }
    return recipes[case["id"]]()


@pytest.mark.parametrize("case", oracle("hostile"), ids=lambda case: f"{case['id']}-{case['name']}")
def test_a_hostile_file_is_read_as_specified_or_refused_in_a_line(case: dict[str, Any]) -> None:
    expected, data, started = case["expected"], made(case), time.process_time()
    if case["id"] == "ax61":
        (page,) = read_transcript(data, case["name"])[1]
        assert [page.regions[0].text, len(page.regions)] == ["z19999", 20_000]
    elif "refused" in expected:
        with pytest.raises(DatasetError, match=expected["refused"]) as refused:
            read_transcript(data, case["name"])
        assert "\n" not in str(refused.value)
    else:
        pages = [as_lists([page]) for page in read_transcript(data, case["name"])[1]]
        assert pages == expected.get("pages", [expected.get("regions")])
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "data",
    [
        b"<?xml " * 1_000_000,
        b"<PcGts><Page><TextRegion custom='" + b"readingOrder {" * 400_000 + b"'/></Page></PcGts>",
        b"<html class='ocr'>" + b"<div class='ocr_carea'><span class='ocr_line'>" * 100_000,
        b"<alto><ReadingOrder><ElementRef REF='"
        + b"b " * 300_000
        + b"'/></ReadingOrder><Layout><Page><TextBlock ID='b'>"
        + b"<TextLine><String CONTENT='x'/></TextLine>" * 30_000
        + b"</TextBlock></Page></Layout></alto>",
        b"<alto><Layout><Page>"
        + b"<ComposedBlock>" * 900
        + b"<TextLine><String CONTENT='x'/></TextLine>" * 60_000
        + b"</ComposedBlock>" * 900
        + b"</Page></Layout></alto>",
    ],
    ids=["declarations", "custom", "hocr", "references", "deep"],
)
def test_what_is_made_to_take_long_does_not(data: bytes) -> None:
    started = time.process_time()
    with contextlib.suppress(DatasetError):
        read_transcript(data)
    assert time.process_time() - started < 5


def test_all_members_of_a_gzip_file_are_read_and_a_cut_one_is_refused() -> None:
    data = gzip.compress(b"one\n") + gzip.compress(b"two\n")
    assert as_lists(read_transcript(data, "a.txt.gz")[1]) == [["one", "two"]]
    with pytest.raises(DatasetError, match="it ends too early"):
        read_transcript(data[:-9], "a.txt.gz")


def test_lines_that_all_lie_over_each_other_are_not_paired() -> None:
    lines = [Line("x", box=(0.0, 0.0, 1.0, 1.0))] * 1_500
    assert pair_lines(lines, lines).reason == "too many lines lie over each other"


def test_words_over_a_line_break_are_joined_as_specified() -> None:
    for case in oracle("hyphens"):
        lines = join_hyphens([Line(text) for text in case["lines"]])
        assert [line.text for line in lines] == case["expected"], case["id"]


def test_alto_joins_words_by_what_it_says_of_them() -> None:
    alto = (
        b'<alto><Layout><Page><TextBlock><TextLine><String CONTENT="Ober" SUBS_TYPE="HypPart1" SUBS_CONTENT="Oberste"/>'
        b'<HYP/></TextLine><TextLine><String CONTENT="ste" SUBS_TYPE="HypPart2" SUBS_CONTENT="Oberste"/>'
        b'<String CONTENT="x"/></TextLine></TextBlock></Page></Layout></alto>'
    )
    assert as_lists(read_transcript(alto, hyphens="join")[1]) == [["Oberste", "x"]]
    assert as_lists(read_transcript(alto)[1]) == [["Ober-", "ste x"]]


PAGE = (
    "<PcGts><Page><TextRegion id='r'><TextLine><Word><Glyph><TextEquiv><Unicode>g</Unicode></TextEquiv></Glyph>"
    "<TextEquiv><Unicode>word</Unicode></TextEquiv></Word><TextEquiv><Unicode>line</Unicode></TextEquiv></TextLine>"
    "<TextEquiv><Unicode>region</Unicode></TextEquiv></TextRegion></Page></PcGts>"
)


@pytest.mark.parametrize(("level", "text"), [("region", "region"), ("line", "line"), ("word", "word"), ("glyph", "g")])
def test_the_text_of_a_level_is_taken_and_disagreement_noted(level: Any, text: str) -> None:
    (page,) = read_transcript(PAGE.encode(), level=level)[1]
    assert page.text == text
    assert page.notes == ("1 of 1 regions have lines that differ from the text of the region: r",)


def test_lines_are_paired_by_place_then_by_id() -> None:
    by_id = {case["id"]: case for case in PAGES}
    for case in oracle("lines"):
        source = case if "gt" in case else by_id[case["id"]]
        sides = [
            read_transcript(source[side].encode(), "a.xml")[1] if "gt" in case else read(source[side])
            for side in ("gt", "ocr")
        ]
        reference, prediction = ([line for page in pages for line in page.lines] for pages in sides)
        paired = pair_lines(reference, prediction)
        assert {
            "by": paired.by,
            "lines": [len(reference), len(prediction)],
            "pairs": [list(pair) for pair in paired.pairs],
        } == case["expected"], case["id"]
        assert (paired.by is None) == bool(paired.reason)


def test_names_pair_by_stem_or_running_number() -> None:
    for case in oracle("pairing"):
        if case["expected"] is None:
            with pytest.raises(DatasetError, match=r"recto\.xml"):
                pair_names(case["gt"], case["ocr"])
            continue
        found = pair_names(case["gt"], case["ocr"])
        assert sorted(map(list, found.pairs)) == sorted(case["expected"]["pairs"]), case["id"]
        assert list(found.reference_only) == case["expected"]["gt_only"]
        assert list(found.prediction_only) == case["expected"]["ocr_only"]


def test_mets_pairs_pages_and_refuses_what_lies_outside() -> None:
    for case in oracle("mets"):
        expected, options = case["expected"], case["options"]
        groups = {"reference_group": options.get("gt_group", ""), "prediction_group": options.get("ocr_group", "")}
        if "refused" in expected:
            with pytest.raises(DatasetError, match=expected["refused"]):
                mets_pages(parse_xml(case["mets"]), **groups)
            continue
        found = mets_pages(parse_xml(case["mets"]), **groups)
        assert found.reference_group == expected["gt_group"]
        assert {name: [list(page) for page in pages] for name, pages in found.engines.items()} == expected["engines"]
        assert list(found.refused) == expected.get("refused_hrefs", [])


@given(st.binary(max_size=300), st.sampled_from(["a.xml", "a.txt", "a.hocr", "a"]))
def test_any_bytes_are_read_or_refused(data: bytes, name: str) -> None:
    try:
        read_transcript(data, name)
    except DatasetError as error:
        assert "\n" not in error.message


@given(st.recursive(st.text("ab\u0364 -\n", max_size=6), lambda inner: st.lists(inner, max_size=4), max_leaves=12))
def test_any_tree_of_page_elements_is_read(tree: Any) -> None:
    def xml(node: Any, depth: int) -> str:
        names = ("TextRegion", "TextLine", "Word", "Glyph")
        if isinstance(node, str):
            return f"<TextEquiv><Unicode>{node}</Unicode></TextEquiv>"
        return "".join(f"<{names[depth % 4]}>{xml(each, depth + 1)}</{names[depth % 4]}>" for each in node)

    (page,) = read_transcript(f"<PcGts><Page>{xml(tree, 0)}</Page></PcGts>".encode())[1]
    assert all(line.text == line.text.strip() != "" for line in page.lines)

"""What rankings are worth, against definitions written out again; captions; BM25; answers that are no vectors."""

from __future__ import annotations

import base64
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.errors import DatasetError
from loupe.features.embed.corpus import captions
from loupe.features.embed.inputs import Box, Query, Region, read_region
from loupe.features.embed.journal import BadVector, MalformedAnswerError, read_vectors
from loupe.features.embed.retrieval import (
    Bm25,
    Tiebreak,
    all_measures,
    expected_at_random,
    measures,
    score,
    similarities,
    terms,
)
from loupe.features.embed.vectors import Embeddings, RegionLine, read_embeddings

# --- measures

grades = st.dictionaries(st.sampled_from("abcdefghij"), st.integers(1, 4), min_size=1)
orders = st.lists(st.sampled_from("abcdefghijklmno"), unique=True, max_size=15)


@given(orders, grades, st.integers(1, 20))
def test_measures_follow_their_definitions(ranked: list[str], relevant: dict[str, int], k: int) -> None:
    found = measures(ranked, relevant, k)
    dcg = sum(relevant.get(page, 0) / math.log2(place + 2) for place, page in enumerate(ranked[:k]))
    ideal = sum(gain / math.log2(place + 2) for place, gain in enumerate(sorted(relevant.values())[::-1][:k]))
    hits = [page in relevant for page in ranked[:k]]
    at_hits = [sum(hits[: place + 1]) / (place + 1) for place, hit in enumerate(hits) if hit]
    assert found[f"ndcg@{k}"] == pytest.approx(dcg / ideal)
    assert found[f"recall@{k}"] == pytest.approx(sum(hits) / len(relevant))
    assert found[f"r_cap@{k}"] == pytest.approx(sum(hits) / min(len(relevant), k))
    assert found[f"precision@{k}"] == pytest.approx(sum(hits) / k)
    assert found[f"map@{k}"] == pytest.approx(sum(at_hits) / len(relevant))
    assert found[f"mrr@{k}"] == pytest.approx(1 / (hits.index(True) + 1) if any(hits) else 0)
    assert found[f"hit_rate@{k}"] == float(any(hits))
    assert all(0 <= value <= 1 + 1e-12 for value in found.values())


def test_the_worked_example_with_linear_gain_has_its_value() -> None:
    # Gains 3, 2, 3, 0, 1, 2 of judged 3, 3, 2, 2, 1: DCG 6.861, ideal 7.141. With 2^grade - 1 it would be 0.949.
    found = measures(list("abcdef"), {"a": 3, "b": 2, "c": 3, "e": 1, "f": 2}, 6)
    assert found["ndcg@6"] == pytest.approx(6.861127 / 7.140995, abs=1e-6)


@given(st.integers(1, 6), st.data())
def test_chance_is_the_mean_over_all_orders(pages: int, data: st.DataObject) -> None:
    names = "abcdef"[:pages]
    relevant = data.draw(st.dictionaries(st.sampled_from(names), st.integers(1, 3), min_size=1))
    k = data.draw(st.integers(1, 7))
    every = [measures(order, relevant, k) for order in itertools.permutations(names)]
    for name, value in expected_at_random(relevant, pages, k).items():
        assert value == pytest.approx(sum(one[name] for one in every) / len(every))


def test_ties_go_by_descending_id_and_what_is_not_ranked_stays_away() -> None:
    order = Tiebreak(["p10", "p9", "é", "a"])
    assert order.ranked(np.array([0.5, 0.5, 0.5, 0.5])) == [2, 1, 0, 3]
    assert order.ranked(np.array([0.1, -np.inf, -0.2, 0.1])) == [0, 3, 2]


def test_rows_of_zeros_match_nothing_and_equal_rows_tie_exactly() -> None:
    rng = np.random.default_rng(1)
    row = rng.standard_normal(2048).astype("<f4")
    corpus = np.stack([row, np.zeros_like(row), *rng.standard_normal((37, 2048)).astype("<f4"), row])
    found = similarities(row[None], corpus)[0]
    assert found[1] == -np.inf and found[0] == found[-1]
    assert (similarities(np.zeros((1, 2048), dtype="<f4"), corpus) == -np.inf).all()


def unit(*values: float) -> list[float]:
    return (np.array(values) / np.linalg.norm(values)).tolist()


def test_a_page_counts_with_the_best_of_text_and_regions() -> None:
    line = {"crop_path": "", "caption_text": "", "label": "image"}
    found = Embeddings(
        texts=np.array([unit(1, 0, 0), unit(0, 1, 0), [0, 0, 0]], dtype="<f4"),
        page_ids=["a", "b", "c"],
        regions=np.array([unit(0, 0, 1), unit(0, 1, 1)], dtype="<f4"),
        region_lines=[RegionLine(page_id="b", region_index=0, **line), RegionLine(page_id="c", region_index=1, **line)],
        queries=np.array([unit(0, 0, 1), unit(1, 0, 0), unit(1, 1, 1)], dtype="<f4"),
        query_ids=["x", "y", "z"],
    )
    queries = [
        Query(query_id="x", text="x", relevant={"b": 1}),
        Query(query_id="y", text="y", relevant={"c": 1}),
        Query(query_id="z", text="z", relevant={}),
    ]
    result = score(found, queries)
    assert (result.queries, result.without_relevant, set(result.scores)) == (2, 1, {"max", "text", "regions", "random"})
    assert {system: result.scores[system]["recall@1"].value for system in ("max", "text", "regions")} == {
        "max": 0.5,  # b for x by its region; a for y by its text
        "text": 0.5,  # all texts are equally far from x, and b has the larger id; c, which failed, is not ranked
        "regions": 1.0,  # for y both regions are equally far, and c has the larger id
    }
    assert result.scores["max"]["ndcg@5"].mteb_rounded == round(result.scores["max"]["ndcg@5"].value, 5)
    interval = result.scores["text"]["recall@1"]
    assert (interval.low, interval.high) == (0, 1)


def test_a_perfect_ranking_is_worth_one_at_every_cutoff_but_precision() -> None:
    found = all_measures(["a", "b"], {"a": 2, "b": 1})
    assert all(found[f"ndcg@{k}"] == 1 for k in (1, 3, 5, 10, 20, 100, 1000))
    assert found["precision@5"] == 0.4


# --- BM25


def test_bm25_follows_its_formula() -> None:
    documents = ["a b a", "b c", "c c d e"]
    scores = Bm25(documents).scores("A c")

    def part(count: int, length: int, having: int) -> float:
        rarity = math.log(1 + (3 - having + 0.5) / (having + 0.5))
        return rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / 3))

    assert scores.tolist() == pytest.approx([part(2, 3, 1), part(1, 2, 2), part(2, 4, 2)])
    assert Bm25(documents).scores("zzz").tolist() == [-np.inf] * 3
    assert Bm25([]).scores("a").tolist() == []
    assert Bm25(["", ""]).scores("a").tolist() == [-np.inf] * 2


def test_terms_are_words_and_pairs_of_characters() -> None:
    assert list(terms("Nº 5: naïve_x 光 日本語")) == ["nº", "5", "naïve_x", "光", "日本", "本語"]


# --- captions


def region(label: str, box: Box, text: str = "", index: int = 0) -> Region:
    return Region(index=index, label=label, box=box, text=text)


def test_a_caption_goes_to_the_nearest_figure_above_or_below() -> None:
    page = [
        region("image", (100, 100, 400, 300), index=0),
        region("figure_title", (120, 310, 380, 330), "below the first", index=1),
        region("chart", (100, 500, 400, 700), index=2),
        region("vision_footnote", (100, 705, 200, 720), "source", index=3),
        region("figure_title", (100, 480, 400, 498), "above the chart", index=4),
        region("text", (100, 800, 400, 900), "no caption", index=5),
    ]
    assert captions(page) == {0: "below the first", 2: "source\nabove the chart"}


def test_without_overlap_the_nearest_centre_counts_and_ties_go_to_the_lower_index() -> None:
    page = [
        region("image", (0, 0, 100, 100), index=1),
        region("image", (800, 0, 900, 100), index=0),
        region("figure_title", (400, 300, 500, 320), "between", index=2),
        region("vision_footnote", (120, 0, 300, 20), "beside the first", index=3),
    ]
    assert captions(page) == {0: "between\nbeside the first", 1: "between"}
    apart = [page[0], region("image", (800, 200, 900, 300), index=0), page[2]]
    assert captions(apart) == {0: "", 1: "between"}


def test_one_title_of_figures_side_by_side_goes_to_all_and_two_titles_to_their_own() -> None:
    left, right = region("image", (0, 0, 400, 300), index=0), region("image", (500, 0, 900, 280), index=1)
    title = region("figure_title", (300, 310, 560, 330), "both", index=2)
    assert captions([left, right, title]) == {0: "both", 1: "both"}
    own = [region("figure_title", (0, 310, 400, 330), "a", index=2), region("figure_title", (500, 310, 900, 330), "b")]
    assert captions([left, right, *own]) == {0: "a", 1: "b"}
    assert captions([title]) == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["image", "chart", "figure_title", "vision_footnote", "text"]),
            st.lists(st.floats(-10, 1010), min_size=4, max_size=4),
        ),
        max_size=12,
    )
)
def test_every_caption_is_used_whatever_the_boxes(rows: list[tuple[str, list[float]]]) -> None:
    read = [
        read_region({"index": number, "label": label, "bbox_2d": box, "content": f"t{number}"})
        for number, (label, box) in enumerate(rows)
    ]
    page = [one for one in read if one is not None]
    found = captions(page)
    anchors = [number for number, one in enumerate(page) if one.label in ("image", "chart")]
    assert list(found) == anchors
    texts = [one.text for one in page if one.label in ("figure_title", "vision_footnote")]
    used = {line for caption in found.values() for line in caption.split("\n") if line}
    assert used == (set(texts) if anchors else set())


@pytest.mark.parametrize(
    "row",
    [
        None,
        [],
        {},
        {"index": 0, "label": "image", "bbox_2d": [0, 0, 10, float("nan")]},
        {"index": 0, "label": "image", "bbox_2d": [5, 0, 5, 10]},
        {"index": -1, "label": "image", "bbox_2d": [0, 0, 9, 9]},
        {"index": 0, "label": 3, "bbox_2d": [0, 0, 9, 9]},
        {"index": 0, "label": "image", "bbox_2d": [1, 2, 3]},
    ],
)
def test_what_is_no_region_is_left_out(row: object) -> None:
    assert read_region(row) is None


# --- answers


def answer(*rows: object) -> bytes:
    return json.dumps({"data": list(rows)}).encode()


def test_vectors_are_put_in_order_and_normalised_whatever_their_form() -> None:
    packed = base64.b64encode(np.array([0, 3], dtype="<f4").tobytes()).decode()
    body = answer(
        {"index": 1, "embedding": packed}, {"index": 0, "embedding": [3e200, 4e200]}, {"index": 2, "data": [1, 0]}
    )
    found = read_vectors(body, 3, 2)
    assert [one.tolist() for one in found if not isinstance(one, BadVector)] == [
        pytest.approx([0.6, 0.8]),
        [0, 1],
        [1, 0],
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"embedding": [1.0]}, "1 numbers, where 2"),
        ({"embedding": [None, 1.0]}, "NaN"),
        ({"embedding": [0.0, 0.0]}, "zeros"),
        ({"embedding": []}, "0 numbers"),
        ({"embedding": "not base64"}, "0 numbers"),
        ({"data": [[1.0, 2.0], [3.0, 4.0]]}, "late-interaction"),
        ({}, "0 numbers"),
    ],
)
def test_a_vector_that_is_none_says_why(row: dict[str, object], reason: str) -> None:
    good, bad = read_vectors(answer({"embedding": [1, 0]}, row), 2, 2)
    assert isinstance(bad, BadVector) and reason in bad.reason
    assert not isinstance(good, BadVector)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[1]",
        answer({"embedding": [1]}),
        answer(*[{"embedding": [1]}] * 3),
        b'{"data": [NaN, 1]}',
        answer({"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}),
        answer({"index": -1, "embedding": [1]}, {"index": 0, "embedding": [1]}),
        b"[" * 100_000,
    ],
)
def test_an_answer_in_which_vectors_cannot_be_told_apart_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedAnswerError):
        read_vectors(body, 2, None)


@pytest.mark.parametrize(
    "header",
    [b"{'descr': x,\n'", b"(" * 5000, b"{'descr': '<f4', 'fortran_order': False, 'shape': (10**9, 10**9)}", b""],
)
def test_a_matrix_with_a_broken_header_is_named(tmp_path: Path, header: bytes) -> None:
    text = header.ljust(118) + b"\n"
    file = tmp_path / "corpus_ocr_text.npy"
    file.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64))
    with pytest.raises(DatasetError, match=r"corpus_ocr_text\.npy: not a NumPy file"):
        read_embeddings(tmp_path)

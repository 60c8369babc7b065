"""What a page of OmniDocBench 1.5 says beside its samples: what has no score, what is odd, what fixed mode mends."""

from __future__ import annotations

from typing import Any

import pytest

from loupe.benchmarks.omnidocbench.ground_truth import read_ground_truth
from loupe.benchmarks.omnidocbench.line_match import Match, groups_of
from loupe.benchmarks.omnidocbench.lines import split_block_arrays, split_item_arrays
from loupe.benchmarks.omnidocbench.neighbours import distance_matrix
from loupe.benchmarks.omnidocbench.page_match import match_page
from loupe.benchmarks.omnidocbench.records import Block, Item, PageMatch, PredictedItem
from loupe.benchmarks.omnidocbench.table_match import Cell, cells_of

TABLE = "<table><tr><td>alpha</td><td>beta</td></tr><tr><td>gamma</td><td>delta</td></tr></table>"
LATEX = r"\begin{tabular}{ll} alpha & beta \\ gamma & delta \\ \end{tabular}"

ARRAY_WITHOUT_ORDER = {
    "category_type": "equation_isolated",
    "latex": r"\begin{array}{l} a \\ b \end{array}",
    "order": None,
    "anno_id": 2,
}


def element(number: int, text: str, category: str = "text_block", **more: Any) -> dict[str, Any]:
    return {"category_type": category, "text": text, "order": number, "anno_id": number, "attribute": {}, **more}


def table(number: int) -> dict[str, Any]:
    return {"category_type": "table", "html": TABLE, "latex": LATEX, "order": number, "anno_id": number}


def page(*elements: dict[str, Any], cuts: list[tuple[int, int]] | None = None) -> dict[str, Any]:
    relation = [
        {"source_anno_id": source, "target_anno_id": target, "relation_type": "truncated"}
        for source, target in cuts or []
    ]
    return {"layout_dets": list(elements), "extra": {"relation": relation}}


def reasons(match: PageMatch) -> dict[str, str]:
    return {each.piece.content: each.reason for each in match.unscored}


def test_a_header_steals_the_prediction_of_a_title_with_the_same_words() -> None:
    match = match_page(
        page(
            element(1, "Methods of measurement", "title"),
            element(2, "Methods of measurement", "header"),
            element(3, "x"),
        ),
        "Methods of measurement\n\nx",
    )
    stolen = match.facts.stolen_lines
    assert [(each.piece.content, each.anno_ids, each.distance, each.ignored_category) for each in stolen] == [
        ("Methods of measurement", (1,), 0.0, "header")
    ]
    assert reasons(match) == {"Methods of measurement": "taken by an ignored category"}


def test_nothing_is_stolen_where_the_words_were_predicted_twice_unlike() -> None:
    match = match_page(
        page(element(1, "Methods of measurement", "title"), element(2, "Methodical", "header"), element(3, "x")),
        "Methods of measurement\n\nMethodical\n\nx",
    )
    assert match.facts.stolen_lines == ()


def test_every_piece_without_score_says_why() -> None:
    match = match_page(
        page(element(1, "one two three"), element(2, "page 17 of 20", "header"), element(3, "four $x$ five")),
        f"one two three\n\nfour $x$ five\n\n***\n\npage 17 of 20\n\n{TABLE}\n\nsomething invented",
    )
    assert reasons(match) == {
        "***": "empty after normalisation",
        "page 17 of 20": "taken by an ignored category",
        TABLE: "no table in the ground truth",
        "something invented": "unmatched",
        r"\[x\]": "inline formula",
    }


def test_a_lone_header_takes_a_lone_prediction_and_scores_nothing() -> None:
    match = match_page(page(element(1, "page 17", "header")), "quite another thing")
    assert (match.text_block, reasons(match)) == ((), {"quite another thing": "matched to an ignored category"})


def test_the_table_format_that_is_not_assigned_is_named() -> None:
    match = match_page(page(table(1), element(2, "words")), f"{TABLE}\n\n{LATEX}\n\nwords")
    assert [each.reason for each in match.unscored] == ["other table format"]
    assert match.table[0].teds == 1.0


def test_the_cells_of_a_table_without_partner_are_matched_as_text() -> None:
    match = match_page(page(table(1), element(2, "alpha")), f"{TABLE}\n\n{TABLE}")
    assert [(sample.norm_pred, sample.step) for sample in match.text_block] == [("alpha", "assignment")]
    assert match.text_block[0].pieces[0].category == "text_all"


@pytest.mark.parametrize(
    ("cell", "texts", "others"),
    [
        ("<td>5 $\\cdot$ 3</td>", ["5  3"], []),
        ("<td><b><i>deep</i></b></td>", ["deep"], []),
        ("<td>x<br>y</td><td>x <i>y</i></td><td></td><th>head</th>", [], ["x y", "x y", "head"]),
        ("<td> </td><td><!-- note --></td>", ["", "note"], []),
        ("<td>a<table><tr><td>b</td></tr></table></td>", ["b"], []),
        ("<td>" + "<b>" * 5000 + "x" + "</b>" * 5000 + "</td>", ["x"], []),
        ("<td>x</td>" * 60_000, [], []),
    ],
)
def test_cells_with_nothing_but_text_join_the_match(cell: str, texts: list[str], others: list[str]) -> None:
    found = cells_of(f"<table><tr>{cell}</tr></table>").found
    assert [each for each in found if each.joins] == [Cell(text, True) for text in texts]
    assert [each.text for each in found if not each.joins] == others


def test_cells_that_upstream_drops_are_told() -> None:
    surplus = "<table><tr><td>invented<br>text</td><td>plain</td></tr></table>"
    match = match_page(page(table(1), element(2, "alpha")), f"{TABLE}\n\n{surplus}\n\nalpha")
    assert reasons(match) == {"invented text": "cell with more than text", "plain": "unmatched"}


def test_of_headers_with_the_same_words_each_takes_one_line() -> None:
    twice = page(element(1, "one two three"), element(2, "page 17", "header"), element(3, "page 17", "footer"))
    match = match_page(twice, "page 17\n\none two three\n\npage 17\n\npage 17")
    assert [each.anno_ids for each in match.unscored] == [(2,), (3,), (2,)]


def test_a_latex_table_that_fixed_mode_cannot_read_is_kept_as_it_stands() -> None:
    unread = r"\begin{table} alpha & beta \end{table}"
    match = match_page(page(table(1), element(2, "words")), f"{unread}\n\nwords", mode="fixed")
    assert (match.table[0].pred, match.table[0].teds, match.table[0].pieces[0].content) == (unread, 0.0, unread)


def test_a_block_that_is_empty_shifts_what_is_looked_up_and_fixed_mode_mends_it() -> None:
    shifted = page(element(1, "---"), element(2, "one two three"), element(3, "four five six"))
    markdown = "***\n\none two three\n\nfour five six"
    official, fixed = match_page(shifted, markdown), match_page(shifted, markdown, mode="fixed")
    assert (official.facts.shifted_blocks, official.facts.shifted_items) == (2, 2)
    assert (fixed.facts.shifted_blocks, fixed.facts.shifted_items) == (0, 0)
    assert [(sample.gt_position, sample.pred_position) for sample in official.text_block] == [((1,), 0), ((2,), 3)]
    assert [(sample.gt_position, sample.pred_position) for sample in fixed.text_block] == [((2,), 3), ((3,), 16)]
    assert [sample.anno_ids for sample in official.text_block] == [((2,),), ((3,),)]


def test_the_middle_of_a_chain_is_held_twice_and_fixed_mode_holds_it_once() -> None:
    chain = page(element(1, "one "), element(2, "two "), element(3, "three"), cuts=[(1, 2), (2, 3)])
    official, fixed = match_page(chain, "one two three"), match_page(chain, "one two three", mode="fixed")
    assert (official.text_block[0].gt, official.facts.doubled_parts) == ("one two two three", (2,))
    assert official.text_block[0].anno_ids == ((1, 2, 2, 3),)
    assert (fixed.text_block[0].gt, fixed.text_block[0].edit_num) == ("one two three", 0)


def test_groups_of_cut_blocks_that_meet_later_are_united_in_fixed_mode_only() -> None:
    elements = [element(number, f"{number}") for number in range(1, 5)]
    linked = page(*elements, cuts=[(1, 2), (3, 4), (2, 3)])
    texts = {
        mode: [block.text for block in read_ground_truth(linked, mode).blocks["text_block"]]
        for mode in ("parity", "fixed")
    }
    assert texts == {"parity": ["1223", "2334"], "fixed": ["1234"]}


def test_latex_tables_are_emptied_and_fixed_mode_converts_them() -> None:
    tables = page(table(1), element(2, "words"))
    official, fixed = match_page(tables, f"{LATEX}\n\nwords"), match_page(tables, f"{LATEX}\n\nwords", mode="fixed")
    assert (official.table[0].latex_zeroed, official.table[0].teds, official.table[0].pred) == (True, 0.0, "")
    assert official.table[0].pieces[0].content.strip() == LATEX
    assert (fixed.table[0].latex_zeroed, fixed.table[0].teds) == (False, 1.0)


@pytest.mark.parametrize(
    ("broken", "error", "texts"),
    [
        (page(element(1, "one"), cuts=[(1, 7)]), "TypeError", ["one"]),
        (page(element(1, "one"), {**element(2, "two"), "order": None}, cuts=[(1, 2)]), "TypeError", ["twoone"]),
        (page(element(1, "one"), table(2), cuts=[(1, 2)]), "KeyError", ["one"]),
        (page(element(1, "one"), {"category_type": "text_block", "order": 2, "anno_id": 2}), "KeyError", ["one"]),
        ({"layout_dets": [element(1, "one")]}, "KeyError", ["one"]),
        (page(element(1, "one"), ARRAY_WITHOUT_ORDER), "TypeError", ["one"]),
    ],
    ids=["no such block", "no order", "a table", "no text", "no relations", "an array without order"],
)
def test_a_page_that_upstream_ends_on_is_matched_all_the_same(
    broken: dict[str, Any], error: str, texts: list[str]
) -> None:
    match = match_page(broken, "one\n\nsomething else")
    assert match.facts.upstream_error == error
    assert [sample.gt for sample in match.text_block] == texts


SUMS = [
    {"category_type": "equation_isolated", "latex": latex, "order": order, "anno_id": order, "attribute": {}}
    for order, latex in ((1, "$$ total cost = 50 % of price $$"), (2, "$$ remaining sum = 20 of price $$"))
]


@pytest.mark.parametrize(
    ("blocks", "answer", "error"),
    [
        (SUMS, "total cost = 50 % of price remaining sum = 20 of price", "ValueError"),
        (SUMS[1:], "total cost = 50 % of price remaining sum = 20 of price", ""),
        (SUMS, "$$ total cost = 50 % of price $$\n\n$$ remaining sum = 20 of price $$", ""),
        ([{**SUMS[1], "latex": "remaining sum\\"}], "remaining sum", "no end"),
    ],
    ids=["a comment in an array", "no array", "formulas as formulas", "a backslash at the end"],
)
def test_a_formula_among_the_texts_that_pylatexenc_cannot_read_ends_upstream(
    blocks: list[dict[str, Any]], answer: str, error: str
) -> None:
    """Upstream makes plain characters of the formulas that text was matched to, and there it catches nothing."""
    match = match_page(page(element(7, "one"), *blocks), f"one\n\n{answer}")
    assert match.facts.upstream_error == error
    assert bool(match.formulas_as_text) == ("$$" not in answer)


@pytest.mark.parametrize(
    ("first", "error"),
    [
        ({"category_type": "equation_isolated", "latex": "x", "text": "x"}, "KeyError"),
        ({"category_type": "table", "html": "<table></table>", "text": "x"}, "KeyError"),
        ({"category_type": "text_block", "text": None}, "TypeError"),
        ({"category_type": "figure", "text": "x"}, ""),
    ],
    ids=["a formula first", "a table first", "no text", "a figure first"],
)
def test_a_joined_block_that_upstream_cannot_read_says_so(first: dict[str, Any], error: str) -> None:
    joined = page({**first, "order": 1, "anno_id": 1}, element(2, "two"), element(3, "one"), cuts=[(1, 2)])
    assert match_page(joined, "one").facts.upstream_error == error


@pytest.mark.parametrize(
    ("refused", "error"), [("<![x[", "ParserRejectedMarkup"), ("&#" + "9" * 5000 + ";", "ValueError")]
)
def test_a_table_that_html_parser_refuses_ends_upstream_on_either_side(refused: str, error: str) -> None:
    broken = TABLE.replace("<td>", f"<td>{refused}", 1)
    fine, surplus = match_page(page(table(1)), TABLE), match_page(page(table(1)), f"{TABLE}\n\n{broken}")
    predicted = match_page(page(table(1)), broken)
    reference = match_page(page({**table(1), "html": broken}), TABLE)
    assert fine.facts.upstream_error == ""
    assert [each.facts.upstream_error for each in (predicted, reference, surplus)] == [error] * 3


def test_rows_of_one_column_arrays_are_formulas_of_their_own() -> None:
    latex = r"$$ \begin{array}{l} a \\ b = \\[2pt] c \\ \end{array} $$"
    blocks = split_block_arrays([Block(category="equation_isolated", latex=latex, order=7)])
    assert [(block.latex, block.order) for block in blocks] == [
        (r"\[a\]", 7.1),
        (r"\[b =\]", 7.2),
        (r"\[[2pt] c\]", 7.3),
    ]
    item = Item(category="equation_isolated", content=latex, start=100, end=200)
    parts = [source.item for source in split_item_arrays([PredictedItem(4, item)])]
    assert [latex[part.start - 100 : part.end - 100 + 1] for part in parts] == ["a", "b =", "[2pt] c"]


@pytest.mark.parametrize("spec", ["@{}l", "ll", "p{2cm}", ""])
def test_other_arrays_stay_whole(spec: str) -> None:
    block = Block(category="equation_isolated", latex=rf"\begin{{array}}{{{spec}}} a \\ b \end{{array}}")
    assert split_block_arrays([block]) == [block]


def test_leftovers_are_paired_in_the_order_in_which_a_set_is_walked() -> None:
    truth, predicted = [str(number) for number in range(10)], ["x"] * 3
    assigned = {(0,): [Match(block, (0,), "assignment", 0.0) for block in (0, 1, 3, 4, 6, 7, 8)]}
    groups = groups_of(assigned, truth, predicted, distance_matrix(truth, predicted))
    left = [(group.blocks, group.key) for group in groups if group.step == "leftover"]
    assert list(set(range(10)) - {0, 1, 3, 4, 6, 7, 8}) == [9, 2, 5]
    assert left == [((9,), (1,)), ((2,), (2,))]
    assert groups[-1].blocks == (5,)

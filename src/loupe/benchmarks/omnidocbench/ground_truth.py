"""Read a page of `OmniDocBench.json` as blocks: cut ones joined, in the order of the match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from loupe.benchmarks.omnidocbench.records import Block, Mode

AnnoId: TypeAlias = int | str | None

#: Matched, but without a score.
IGNORED: Final = (
    "equation_caption",
    "figure_caption",
    "figure_footnote",
    "table_caption",
    "table_footnote",
    "code_algorithm",
    "code_algorithm_caption",
    "header",
    "footer",
    "page_footnote",
    "page_number",
)
#: In the order in which they are joined before they are sorted (#mixed-match): it decides between equal orders.
TEXTS: Final = ("text_block", "title", "code_txt", "code_txt_caption", "reference", *IGNORED)
FORMULA: Final = "equation_isolated"
TABLE: Final = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundTruth:
    """The blocks of a page by category, in the order in which upstream stores them."""

    blocks: Mapping[str, Sequence[Block]]
    #: anno_ids whose text a joined block holds more than once.
    doubled_parts: tuple[AnnoId, ...] = ()
    #: The exception that upstream would end with; the page is read as well as it can be all the same.
    upstream_error: str = ""

    def mixed(self) -> list[Block]:
        """All but tables and figures: what is matched with the text and the formulas of the prediction."""
        found = [block for category in (*TEXTS, FORMULA) for block in self.blocks.get(category, ())]
        return sorted(found, key=_place)

    def formulas(self) -> list[Block]:
        """The displayed formulas, in their order on the page."""
        return sorted(self.blocks.get(FORMULA, ()), key=_place)

    def tables(self) -> list[Block]:
        """The tables, in their order on the page."""
        return sorted(self.blocks.get(TABLE, ()), key=_place)


@dataclass(slots=True)
class _Reading:
    """The elements that have been read so far."""

    blocks: dict[str, list[Block]] = field(default_factory=dict)
    doubled: list[AnnoId] = field(default_factory=list)
    error: str = ""

    def store(self, block: Block) -> None:
        self.blocks.setdefault(block.category, []).append(block)


def read_ground_truth(page: Mapping[str, Any], mode: Mode) -> GroundTruth:
    """The blocks of one page in 1.5. In fixed mode, text that hangs together through several cuts is held once."""
    groups = _cut_groups(page)
    if mode == "fixed":
        groups = _united(groups)
    reading, elements = _read_elements(page, groups)
    for group in groups:
        _store_joined([elements[anno_id] for anno_id in group if anno_id in elements], len(group), reading)
    return GroundTruth(blocks=reading.blocks, doubled_parts=tuple(reading.doubled), upstream_error=reading.error)


def read_counted_ground_truth(page: Mapping[str, Any], mode: Mode) -> GroundTruth:
    """The blocks of one page in 1.6: without what is to be ignored, each text once. Both modes read alike.

    Protocol: docs/protocols/omnidocbench_v16.md#ground-truth.
    """
    groups = _cut_sets(page)
    reading, elements = _read_elements(page, groups, without_ignored=True)
    for group in groups:
        members = [elements[anno_id] for anno_id in group if anno_id in elements]
        if members and not any(member.get("ignore") for member in members):
            _store_joined(members, len(members), reading)
    return GroundTruth(blocks=reading.blocks, upstream_error=reading.error)


def _read_elements(
    page: Mapping[str, Any], groups: Iterable[Iterable[AnnoId]], *, without_ignored: bool = False
) -> tuple[_Reading, dict[AnnoId, Mapping[str, Any]]]:
    """The elements that no cut divides, stored, and the others by their ids."""
    cut = {anno_id for group in groups for anno_id in group}
    elements: dict[AnnoId, Mapping[str, Any]] = {}
    reading = _Reading(error="" if "relation" in (page.get("extra") or {}) else "KeyError")
    for element in page["layout_dets"]:
        if element.get("anno_id") in cut:
            elements[element["anno_id"]] = element
        elif not (without_ignored and element.get("ignore")):
            reading.error = reading.error or _error_of(element)
            reading.store(_block(element))
    return reading, elements


def _cut_pairs(page: Mapping[str, Any]) -> Iterator[list[AnnoId]]:
    for relation in (page.get("extra") or {}).get("relation") or ():
        if relation.get("relation_type") == "truncated":
            yield [relation["source_anno_id"], relation["target_anno_id"]]


def _cut_sets(page: Mapping[str, Any]) -> list[set[AnnoId]]:
    """The blocks that belong together, however far; as sets, whose order decides between equal orders on the page."""
    groups: list[set[AnnoId]] = []
    for pair in _cut_pairs(page):
        united = set(pair)
        known = [group for group in groups if not group.isdisjoint(pair)]
        for group in known:
            united |= group
        groups = [*(group for group in groups if group not in known), united]
    return groups


def _cut_groups(page: Mapping[str, Any]) -> list[list[AnnoId]]:
    """The blocks that belong together, by relation: upstream's lists, which repeat a block in the middle of a chain."""
    groups: list[list[AnnoId]] = []
    for pair in _cut_pairs(page):
        known = [group for group in groups if pair[0] in group or pair[1] in group]
        for group in known:
            group.extend(pair)
        if not known:
            groups.append(pair)
    return groups


def _united(groups: Sequence[Sequence[AnnoId]]) -> list[list[AnnoId]]:
    """The same without repetition, and groups that share a block made one."""
    united: list[list[AnnoId]] = []
    for group in groups:
        touching = [other for other in united if not set(other).isdisjoint(group)]
        united = [other for other in united if other not in touching]
        united.append(list(dict.fromkeys([*(anno_id for other in touching for anno_id in other), *group])))
    return united


def _store_joined(members: Sequence[Mapping[str, Any]], named: int, reading: _Reading) -> None:
    """Store one block with the texts of all members; or, where upstream cannot join them, the members themselves."""
    if len(members) < named or (len(members) > 1 and any(member.get("order") is None for member in members)):
        reading.error = "TypeError"
    elif any("text" not in member for member in members):
        reading.error = "KeyError"
    elif not all(isinstance(member["text"], str) for member in members):
        reading.error = "TypeError"
    if not members or any("text" not in member for member in members):
        for member in members:
            reading.store(_block(member))
        return
    members = sorted(members, key=lambda member: member.get("order") or 0)
    first = members[0]
    if first["category_type"] in (FORMULA, TABLE):
        reading.error = reading.error or "KeyError"  # the joined block has a text, and neither LaTeX nor HTML
    parts = tuple(member["anno_id"] for member in members)
    reading.doubled.extend(part for part in dict.fromkeys(parts) if parts.count(part) > 1)
    reading.store(
        Block(
            category=first["category_type"],
            text="".join(_as_text(member, "text") for member in members),
            order=first.get("order"),
            anno_id=first["anno_id"],
            parts=parts,
        )
    )


def _block(element: Mapping[str, Any]) -> Block:
    anno_id = element.get("anno_id")
    return Block(
        category=element["category_type"],
        fine_category=element.get("fine_category_type") or "",
        text=_as_text(element, "text"),
        latex=_as_text(element, "latex"),
        html=_as_text(element, "html"),
        order=element.get("order"),
        anno_id=anno_id,
        attribute=element.get("attribute") or {},
        parts=(anno_id,),
    )


def _error_of(element: Mapping[str, Any]) -> str:
    """Name the exception that upstream ends with on an element that has no text, LaTeX or HTML at all; an empty one is
    no trouble.
    """
    category = element["category_type"]
    content = {FORMULA: "latex", TABLE: "html"}.get(category, "text" if category in TEXTS else "category_type")
    return "" if content in element else "KeyError"


def _as_text(element: Mapping[str, Any], field_name: str) -> str:
    """Upstream's `str(...)`: a null becomes the word None. An absent field, where it ends with KeyError, is empty."""
    return str(element[field_name]) if field_name in element else ""


def _place(block: Block) -> float:
    return block.order or 0

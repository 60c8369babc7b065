"""What code and documents cite is in the repository: pages, and the sections of protocols by their anchors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.test_docs import anchors

ROOT = Path(__file__).parents[2]
#: Folder → endings of what people read there. The protocols themselves have sections with numbers.
READ = {"src": ".py .toml .html .js", "tests": ".py", "perf": ".py", "script": ".py", "docs": ".md", ".": ".md .toml"}
FILES = sorted(
    path
    for folder, endings in READ.items()
    for path in (ROOT.glob("*") if folder == "." else (ROOT / folder).rglob("*"))
    if path.suffix in endings.split() and path != Path(__file__) and path.parent != ROOT / "docs/protocols"
)
#: `docs/protocols/cdm.md#ransac and #scores`: further anchors are those of the same page.
CITED = re.compile(
    r"\bdocs/(?P<page>[\w/.-]+?\.md)"
    r"(?P<marks>#[\w-]+(?:(?: \([^)]*\))?(?:,| and| or| to)(?: |\n *(?:#:? )?)#[a-z][\w-]+)*)?"
)
#: Sections by number or letter, which nobody can follow: `section 8.5 b`, `engines.md A3`, `protocol page cdm.md`.
BARE = re.compile(
    r"\b[Ss]ections? (?:\d+(?:\.\d+)*|[A-H]\d?)\b|\b\w+\.md,? (?:§|[A-H]\d?\b)|[Pp]rotocol page|§ ?\d"
    r"|(?<!docs/)(?<!\.\./)\bprotocols/\w+\.md"
    # `(8.5 b)`, `(protocol, 8.4)`, `(4, steps 8 and 11)`.
    r"|\b\d+\.\d+ [a-k](?=[).,;:])|\bprotocol,? \d|\(\d+(?:\.\d+)*, (?:steps?|rules?|points?) \d[^)]*\)"
)
RFC = re.compile(r"RFC \d+,\s+section [\d.]+")


def wrong(text: str) -> list[str]:
    """Citations that lead nowhere, and bare ones."""
    found = BARE.findall(RFC.sub("", text))
    for cited in CITED.finditer(text):
        page = ROOT / "docs" / cited["page"]
        known = anchors(page) if page.is_file() else set()
        if not page.is_file() or not set(re.findall(r"#([a-z][\w-]+)", cited["marks"] or "")) <= known:
            found.append(cited[0])
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_citation_leads_to_a_page_and_a_section(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    # Links between documents are relative; tests/house/test_docs.py follows them.
    assert wrong(re.sub(r"\]\([^)]*\)", "]", text) if path.suffix == ".md" else text) == []


#: `(#lines)` in a package of a benchmark is a section of that benchmark's own protocol.
OWN = re.compile(r"\((#[a-z][\w-]+(?:, #[a-z][\w-]+)*)\)")


@pytest.mark.parametrize("benchmark", ["olmocr_bench", "omnidocbench"])
def test_sections_in_brackets_are_those_of_the_benchmarks_own_protocol(benchmark: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src/loupe/benchmarks" / benchmark).rglob("*.py")]
    cited = {mark[1:] for text in texts for marks in OWN.findall(text) for mark in marks.split(", ")}
    assert cited
    assert cited - anchors(ROOT / f"docs/protocols/{benchmark}.md") == set()
    assert [found for text in texts for found in re.findall(r"\((?:[2-9]|1\d)\.\d[^)]*\)[.,;:]", text)] == []


#: `step 2`, `(steps 6 to 10)`: items of the list in the section that the module cites first.
STEP = re.compile(r"\bsteps? (\d+)(?: (?:to|and) (\d+))?\b(?=[).:,])")


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".py"], ids=lambda path: path.name)
def test_steps_by_number_are_those_of_the_section_that_the_module_cites(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert missing_steps(text) == []


def missing_steps(text: str) -> list[str]:
    """Numbers of steps that are no item of the section cited before them, or else of the first one in the text."""
    cited = [each for each in CITED.finditer(text) if each["marks"]]
    found = []
    for step in STEP.finditer(text):
        before = [each for each in cited if each.end() <= step.start()]
        near = [each for each in before if step.start() - each.end() < 10]
        items = numbered_items((near or before[:1])[-1]) if before else set()
        found += [number for number in step.groups() if number and number not in items]
    return found


def numbered_items(cited: re.Match[str]) -> set[str]:
    mark = cited["marks"].split()[0].strip("#,")
    section = (ROOT / "docs" / cited["page"]).read_text("utf-8").partition(f'<a id="{mark}"></a>')[2]
    return set(re.findall(r"^ *(\d+)\. ", re.split(r"\n<a id=[^>]*></a>\n##", section)[0], re.MULTILINE))


def test_a_step_that_is_not_there_is_found() -> None:
    cited = "docs/protocols/cdm.md#normaliser; the comments name its steps."
    assert missing_steps(f"{cited} (steps 6 to 10)") == []
    assert missing_steps(f"{cited} (step 99).") == ["99"]
    assert missing_steps("Environments are one token (step 3).") == ["3"]


@pytest.mark.parametrize(
    "text",
    [
        "as upstream does (section 8.5 b)",
        "protocols/engines.md A3",
        "engines.md A3",
        "protocol page cdm.md, section F",
        "docs/protocols/omnidocbench.md#nowhere",
        "docs/protocols/cdm.md#ransac and #nowhere",
        "docs/protocols/engines.md#outcomes (markers), #nowhere",
        "docs/protocols/nothing.md",
        "§8.4",
        "as in 8.5 b, both ways",
        "whose neighbours differ (protocol, 8.4)",
        "not always comparable (4, steps 8 and 11)",
    ],
)
def test_a_citation_that_cannot_be_followed_is_found(text: str) -> None:
    assert wrong(text)


def test_citations_that_can_be_followed_pass() -> None:
    text = (
        "docs/protocols/omnidocbench.md#overlaps, docs/protocols/cdm.md#ransac and #scores; RFC 9110, section 10.2.3; "
    )
    text += "docs/runs.md."
    assert [cited["marks"] for cited in CITED.finditer(text)] == ["#overlaps", "#ransac and #scores", None]
    assert wrong(text) == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs/protocols").glob("*.md")), ids=lambda page: page.stem)
def test_a_protocol_refers_to_its_own_sections_by_links(page: Path) -> None:
    text = re.sub(r"\[[^\]]*\]\([^)]*\)|````.*?````|```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert re.findall(r"\b[Ss]ections? \d+(?:\.\d+)*|§ ?\d+(?:\.\d+)*", text) == []
    identities = re.findall(r'<a id="([\w-]+)"></a>', text)
    assert len(identities) == len(set(identities))

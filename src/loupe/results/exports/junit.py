"""Comparisons and runs as JUnit XML, which CI systems show as tests.

Source: the schema of the Jenkins xUnit plugin (junit-10.xsd), and the stricter one of Apache Ant (JUnit.xsd by Windy
Road), both of which these files fit: every suite has properties, cases, and what was said, in this order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from loupe.results.comparing.records import Compared, Pair
from loupe.results.comparing.regressions import loss
from loupe.results.control_characters import printable
from loupe.results.headline import headline_of, why_nothing
from loupe.results.scored_here import NOT_HERE
from loupe.results.sections import format_estimate, format_range, notes_of
from loupe.results.tables.record import one_line
from loupe.results.visible_differences import DIFFERENCE_HEADER, difference_cells
from loupe.runs.folder import RunFolder
from loupe.types import Failure, Result

#: Failed samples of a run that become test cases; the others are counted in what is said.
MOST_FAILED = 500
#: Characters of a message, which may be an engine's.
_LONGEST = 1000
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
#: What XML 1.0 has no place for, beside the control characters.
_NO_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test: a measure, or a sample that has no answer. Without a kind it passed."""

    name: str
    kind: Literal["", "failure", "error", "skipped"] = ""
    type: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What belongs together: a run, or a run against its baseline."""

    name: str
    package: str
    created: str
    properties: dict[str, str]
    cases: Sequence[Case]
    said: Sequence[str] = ()


def comparison_suites(compared: Compared) -> list[Suite]:
    """Make a suite for each run against the baseline: a case for each measure, and for each answer that it lacks.

    What fails is what `--fail-on-regression` names; where that was not asked for, what is clearly worse.
    """
    return [_pair_suite(compared, pair) for pair in compared.pairs]


def _pair_suite(compared: Compared, pair: Pair) -> Suite:
    lost = {one.measure: one.why for one in compared.regressions or () if one.run == pair.run}
    base, own = (next(row for row in compared.runs if row.run == run) for run in (compared.baseline, pair.run))
    cases, said = [], [compared.headline_note, compared.verdict]
    for measure, found in pair.measures.items():
        if found.value_a is None and found.value_b is None:
            continue
        better, unit = compared.directions.get(measure, True), compared.units.get(measure, "fraction")
        why = loss(compared, measure, found, None) if compared.regressions is None else lost.get(measure, "")
        difference, interval, p, verdict = difference_cells(found, unit, higher_is_better=better)
        if why:
            cases.append(Case(name=measure, kind="failure", type="regression", message=why))
        elif found.p_holm is None:
            cases.append(Case(name=measure, kind="skipped", message=verdict))
        else:
            cases.append(Case(name=measure))
        named = f", {DIFFERENCE_HEADER[1]} {interval}" if interval else ""
        said.append(f"{measure}: {difference}{named}, {DIFFERENCE_HEADER[2]} {p}: {verdict}")
    cases += _sample_cases(pair.unanswered, said) if lost.get("") else ()
    return Suite(
        name=f"{_plain(pair.name)} against {_plain(base.name)}",
        package=f"{compared.benchmark}@{compared.version}",
        created=RunFolder.open(Path(pair.run)).info.created,
        properties={"run": pair.run, "baseline": compared.baseline, "samples": str(pair.samples)}
        | {"scored_here": str(base.scored_here and own.scored_here)},
        cases=cases,
        said=[*said, *compared.notes, *filter(None, [compared.warning])],
    )


def run_suite(folder: RunFolder, result: Result, below: Collection[str] = (), measure: str = "") -> Suite:
    """Make a case for each measure, which fails if it is `below` what was asked, and for each sample that failed.

    `measure` is the headline that was asked for ("": the one that the run has).
    """
    cases, said = [], [headline_of([result], measure).note]
    for name, found in result.measures.items():
        unit = result.units.get(name, "fraction")
        interval = format_range(found.low, found.high, unit)
        named = f", 95 % interval {interval}" if interval else ""
        value = f"{format_estimate(found, unit)}{named}, n={found.n:,}"
        said.append(f"{name}: {value}")
        if name in below:
            cases.append(Case(name=name, kind="failure", type="fail-under", message=f"{value} is too bad"))
        elif found.value is None:
            cases.append(Case(name=name, kind="skipped", message=f"not computed: {why_nothing(result, name)}"))
        else:
            cases.append(Case(name=name))
    cases += _sample_cases(result.failures, said)
    return Suite(
        name=result.engine,
        package=f"{result.benchmark}@{result.version}",
        created=folder.info.created,
        properties={
            "run": str(folder.path),
            "signature": result.signature,
            "scored_here": str(result.scored_here),
            **({"data_origin": result.data_origin} if result.data_origin else {}),
        },
        cases=cases,
        said=[*said, *result.warnings, *notes_of(result)],
    )


def _plain(name: str) -> str:
    """Return the name of a run without the mark: a CI system takes a suite of another name for another suite."""
    return name.removesuffix(f" ({NOT_HERE})")


def _sample_cases(failures: Sequence[Failure], said: list[str]) -> Iterator[Case]:
    """Yield a case for each sample without an answer; of very many, say how many more there are."""
    for failure in failures[:MOST_FAILED]:
        message = failure.error or "no answer"
        yield Case(name=f"sample {failure.sample}", kind="error", type=failure.outcome, message=message)
    if (more := len(failures) - MOST_FAILED) > 0:
        said.append(f"{more:,} more samples failed")


def junit_xml(suites: Sequence[Suite]) -> bytes:
    """The file. Control characters, and what reorders or hides text, are replaced; messages are bounded."""
    root = ElementTree.Element("testsuites")
    for number, suite in enumerate(suites):
        kinds = [case.kind for case in suite.cases]
        attributes = {"name": suite.name, "package": suite.package, "id": str(number), "hostname": "localhost"}
        attributes |= {"timestamp": stamp[0] if (stamp := _STAMP.match(suite.created)) else "1970-01-01T00:00:00"}
        attributes |= {"tests": str(len(kinds)), "failures": str(kinds.count("failure")), "time": "0"}
        attributes |= {"errors": str(kinds.count("error")), "skipped": str(kinds.count("skipped"))}
        element = _below(root, "testsuite", attributes)
        properties = _below(element, "properties")
        for key, value in suite.properties.items():
            _below(properties, "property", {"name": key, "value": value})
        for case in suite.cases:
            below = _below(element, "testcase", {"name": case.name, "classname": suite.package, "time": "0"})
            if case.kind == "skipped":
                _below(below, "skipped", {"message": case.message})
            elif case.kind:
                _below(below, case.kind, {"type": case.type, "message": case.message})
        _below(element, "system-out").text = "\n".join(_clean(line) for line in suite.said if line)
        _below(element, "system-err")
    ElementTree.indent(root)
    data: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _below(parent: ElementTree.Element, name: str, attributes: dict[str, str] | None = None) -> ElementTree.Element:
    kept = {key: _clean(value) or "–" for key, value in (attributes or {}).items()}
    return ElementTree.SubElement(parent, name, kept)


def _clean(text: str) -> str:
    return one_line(_NO_XML.sub("", printable(text)), _LONGEST)

"""Every way through the questions about ground truth, with a person who answers from a script."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loupe.errors import UsageError
from loupe.features.select.documents import Document, Truth, keep_verified, read_truth, write_truth
from loupe.features.select.ground_truth import Choice, GroundTruth, QuitError, refuse_misplaced


@dataclass
class Script:
    """A person: each answer is a line, or something to do before the next one; when they run out, input ends."""

    answers: list[str | Callable[[], object]]
    asked: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    shown: list[Sequence[tuple[str, str, str]]] = field(default_factory=list)

    def answer(self, question: str) -> str | None:
        self.asked.append(question)
        while self.answers:
            first = self.answers.pop(0)
            if isinstance(first, str):
                return first
            first()
        return None

    def tell(self, line: str) -> None:
        self.told.append(line)

    def show(self, rows: Sequence[tuple[str, str, str]]) -> None:
        self.shown.append(rows)


@dataclass
class Case:
    """Two invoices and a letter; `drafted` notes for which documents drafts were made."""

    folder: Path
    drafted: list[list[str]] = field(default_factory=list)
    empty: bool = False

    def __post_init__(self) -> None:
        names = (("p0.png", True), ("p1.png", True), ("n0.png", False))
        self.documents = [Document(path=self.folder / name, positive=positive) for name, positive in names]

    def draft(self, documents: Sequence[Document]) -> Mapping[str, Truth]:
        self.drafted.append([document.path.name for document in documents])
        truth = Truth() if self.empty else Truth(date="2025-01-02", name="Draft")
        for document in documents:
            write_truth(document, "invoice", truth)
        return {document.id: truth for document in documents}

    def write(self, *names: str, verified: bool = True, **change: object) -> None:
        for document in self.documents:
            if document.path.name in names:
                write_truth(document, "invoice", Truth(date="2025-11-26", name="Foo", verified=verified))
                if change:
                    content = json.loads(document.truth_file.read_text())
                    document.truth_file.write_text(json.dumps({**content, **change}))

    def settle(
        self, *answers: str | Callable[[], object], choice: Choice = "ask", unattended: bool = False
    ) -> tuple[Script, dict[str, Truth]]:
        person = Script(list(answers))
        self.person = person
        flow = GroundTruth(
            documents=self.documents,
            document_type="invoice",
            choice=choice,
            draft=self.draft,
            person=person,
            unattended=unattended,
        )
        return person, flow.settle()

    def truths(self) -> list[Truth | None]:
        return [read_truth(document, "invoice").truth for document in self.documents]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_enter_confirms_as_ok_does(case: Case) -> None:
    _, truths = case.settle("")
    assert [(each.name, each.verified) for each in truths.values()] == [("Draft", True)] * 2


def test_without_any_file_all_are_drafted_and_ok_confirms(case: Case) -> None:
    person, truths = case.settle("what?", "yes", "l", "  OK ")
    assert case.drafted == [["p0.png", "p1.png"]]
    assert len(person.asked) == 4 and len(person.shown) == 2
    assert person.shown[0][0] == (str(case.folder / "p0.json"), "2025-01-02", "Draft")
    assert [(each.name, each.verified) for each in truths.values()] == [("Draft", True)] * 2
    assert all(truth is not None and truth.verified for truth in case.truths())


def test_a_negative_gets_an_empty_verified_file_without_a_question(case: Case) -> None:
    case.write("p0.png", "p1.png")
    person, _ = case.settle("r")
    written = json.loads((case.folder / "n0.json").read_text())
    assert (written["isMatch"], written["date"], written["secondaryField"]) == (False, "", "")
    assert written["metadata"]["verified"] is True and person.told == []


def test_verified_files_go_straight_to_the_models_and_enter_reuses(case: Case) -> None:
    case.write("p0.png", "p1.png")
    person, truths = case.settle("what?", "")
    assert person.asked == ["2 of 2 ground-truth files exist (2 verified). [r]euse / re[g]enerate / [q]uit ?"] * 2
    assert person.shown == [] and case.drafted == []
    assert [each.name for each in truths.values()] == ["Foo", "Foo"]


def test_unverified_files_are_reviewed_and_missing_ones_alone_drafted(case: Case) -> None:
    case.write("p0.png", "p1.png", verified=False)
    assert len(case.settle("reuse", "ok")[0].shown) == 1 and case.drafted == []
    (case.folder / "p1.json").unlink()
    person, truths = case.settle("r", "ok")
    assert person.asked[0].startswith("1 of 2 ground-truth files exist (1 verified)")
    assert case.drafted == [["p1.png"]]
    assert [each.name for each in truths.values()] == ["Foo", "Draft"]


def test_regenerating_drafts_all_anew(case: Case) -> None:
    case.write("p0.png", "p1.png")
    _, truths = case.settle("g", "ok")
    assert case.drafted == [["p0.png", "p1.png"]]
    assert [each.name for each in truths.values()] == ["Draft", "Draft"]


@pytest.mark.parametrize("answers", [["q"], [], ["quit"], ["g", "q"], ["g"], ["g", "what?", "l"]])
def test_quitting_and_the_end_of_input_end_with_three_and_files_stay(case: Case, answers: list[str]) -> None:
    case.write("p0.png", "p1.png")
    with pytest.raises(QuitError) as quit_:
        case.settle(*answers)
    assert quit_.value.exit_code == 3 and ("NAME.json.old" in quit_.value.hint) == ("g" in answers)
    names = ["Draft", "Draft"] if "g" in answers else ["Foo", "Foo"]
    assert [truth.name for truth in case.truths() if truth is not None][:2] == names


def test_the_review_stays_until_every_file_is_valid(case: Case) -> None:
    first = case.folder / "p0.json"

    def change(**values: object) -> Callable[[], object]:
        return lambda: first.write_text(json.dumps({**json.loads(first.read_text()), **values}))

    person, truths = case.settle(
        *(change(date="2025-02-30"), "ok", change(date="2025-02-28", isMatch=False), "ok"),
        *(lambda: first.rename(case.folder / "away"), "ok", lambda: (case.folder / "away").rename(first)),
        *(change(isMatch=True, secondaryField="Mine"), "ok"),
    )
    assert [line.removeprefix(str(first)) for line in person.told] == [
        *(": date '2025-02-30' is no day as YYYY-MM-DD", ": isMatch does not agree with the folder", " is missing"),
    ]
    assert next((each.date, each.name) for each in truths.values()) == ("2025-02-28", "Mine")


def test_what_cannot_be_used_is_never_overwritten_unless_asked(case: Case) -> None:
    case.write("p1.png")
    for name in ("p0.json", "n0.json"):
        (case.folder / name).write_text("{broken")
    with pytest.raises(QuitError):
        case.settle("r", "ok", "q")
    assert [line.split(": ")[1].split(" (")[0] for line in case.person.told] == ["no valid JSON"] * 4
    assert case.person.told[0].endswith("; counts as missing")
    assert case.drafted == [] and (case.folder / "p0.json").read_text() == "{broken"
    _, truths = case.settle("g", "ok")
    assert case.drafted == [["p0.png", "p1.png"]] and len(truths) == 2
    assert all(case.truths())


def test_a_file_of_another_type_counts_as_missing_and_stays(case: Case) -> None:
    case.write("p0.png", "p1.png", documentType="letter")
    with pytest.raises(UsageError, match="documentType is 'letter'"):
        case.settle(choice="reuse", unattended=True)
    assert case.drafted == []


OTHERS = {"documentType": "prescription", "isMatch": True, "date": "2025-03-04", "secondaryField": "Dr._Weber"}


def test_ground_truth_of_another_selection_beside_a_negative_is_left_alone_and_stops_nobody(case: Case) -> None:
    case.write("n0.png", **OTHERS)
    before = (case.folder / "n0.json").read_bytes()
    person, truths = case.settle("ok", choice="reuse")
    assert case.drafted == [["p0.png", "p1.png"]] and len(truths) == 2
    assert person.told == [f"{case.folder / 'n0.json'}: documentType is 'prescription', not 'invoice'; stays as it is"]
    case.settle(choice="regenerate", unattended=True)
    assert (case.folder / "n0.json").read_bytes() == before


def test_without_any_positive_file_a_broken_one_of_a_negative_is_not_overwritten(case: Case) -> None:
    broken = case.folder / "n0.json"
    broken.write_text("{broken but mine")
    with pytest.raises(UsageError, match=r"n0\.json: no valid JSON"):
        case.settle(choice="reuse", unattended=True)
    assert broken.read_text() == "{broken but mine" and case.drafted == [["p0.png", "p1.png"]]


def test_a_type_is_the_same_in_capitals_and_stays_as_it_is_written(case: Case) -> None:
    case.write("p0.png", "p1.png", verified=False, documentType="Invoice")
    _, truths = case.settle("r", "ok")
    assert [each.name for each in truths.values()] == ["Foo", "Foo"]
    written = json.loads((case.folder / "p0.json").read_text())
    assert (written["documentType"], written["metadata"]["verified"]) == ("Invoice", True)


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(case: Case) -> None:
    os.mkfifo(case.folder / "p0.json")
    case.write("p1.png")
    with pytest.raises(UsageError, match=r"p0\.json: is a pipe, not a file"):
        case.settle(choice="reuse", unattended=True)


def test_flags_answer_for_the_person_and_yes_never_regenerates(case: Case) -> None:
    case.write("p0.png", verified=False)
    person, truths = case.settle(choice="reuse", unattended=True)
    assert person.asked == [] and len(person.shown) == 1 and case.drafted == [["p1.png"]]
    assert [each.name for each in truths.values()] == ["Foo", "Draft"]
    case.settle("ok", choice="regenerate")
    assert case.drafted[1:] == [["p0.png", "p1.png"]]


def test_documents_that_nothing_could_be_read_from_are_listed(case: Case) -> None:
    case.empty = True
    person, truths = case.settle("ok")
    assert [line.startswith("nothing could be read from") for line in person.told] == [True, True]
    assert [(each.date, each.name, each.verified) for each in truths.values()] == [("", "", True)] * 2


def test_a_file_that_contradicts_its_folder_is_an_error_that_lists_it(case: Case) -> None:
    case.write("p0.png", "n0.png", isMatch=False)
    for check in (lambda: case.settle("r"), lambda: refuse_misplaced(case.documents, "invoice")):
        with pytest.raises(UsageError, match=r"of 1 documents:\n  .*p0\.json") as refused:
            check()
        assert "loupe review DIR --type invoice" in refused.value.hint


def test_every_confirmed_file_that_a_draft_replaces_is_kept(tmp_path: Path) -> None:
    document = Document(path=tmp_path / "a.png", positive=True)
    for name in ("One", "Two", "Three"):
        write_truth(document, "invoice", Truth(name=name, verified=True))
        keep_verified(document, "invoice")
        write_truth(document, "invoice", Truth(name="draft"))
        keep_verified(document, "invoice")
    kept = {file.name: json.loads(file.read_text())["secondaryField"] for file in tmp_path.glob("*.old*")}
    assert kept == {"a.json.old": "One", "a.json.old-2": "Two", "a.json.old-3": "Three"}


@pytest.mark.parametrize("choice", ["reuse", "regenerate"])
def test_what_nobody_was_asked_to_read_never_becomes_verified(case: Case, choice: Choice) -> None:
    case.write("p0.png", verified=False)
    for _ in range(2):
        _, truths = case.settle(choice=choice, unattended=True)
        assert [each.verified for each in truths.values()] == [False, False]
        assert [each.verified for each in (read_truth(one, "invoice").truth for one in case.documents[:2]) if each] == [
            False
        ] * 2

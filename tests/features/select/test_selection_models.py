"""One model after the other against real servers on loopback: timeouts, errors, deaths, refusals, ranks."""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loupe.errors import EngineUnavailableError, UsageError
from loupe.features.select.assessment import Assessment, Assessor, Selection
from loupe.features.select.benchmark import Known, Phase, Rules, open_selection, text_samples
from loupe.features.select.documents import Document
from loupe.features.select.preparing import Prepared
from loupe.features.select.results import SavedRuns, run_labels, save_documents
from loupe.features.select.serving import (
    Backend,
    Candidate,
    Limits,
    ModelFile,
    ModelList,
    choose_backend,
    choose_models,
    is_apple_silicon,
    read_models,
)
from loupe.features.select.standings import Standing, like_neighbours, stand
from loupe.results.unverified import truth_cell, unverified_warning
from loupe.scoring.summary import Origin, summarise
from loupe.servers.keeper import Keeper
from loupe.types import Prediction, Sample, SampleScores, Score
from tests.features.select.selecting import MODELS, answer, texts
from tests.support.chat_server import Received, Reply, in_thread
from tests.support.served import QUICK

QUICKLY = Limits(timeout=0.3, warm_up=20.0, second_look=0.01, most_timeouts=3)


def samples() -> list[Sample]:
    documents, known = texts()
    return list(text_samples(documents, known, Rules(document_type="invoice")))


def assess(
    url: str, *models: str, limits: Limits = QUICKLY, backend: Backend | None = None, thinking: bool = False
) -> dict[str, Assessment]:
    """Assess models on the invoices and letters of `texts`."""

    async def all_of_them(keeper: Keeper) -> list[Assessment]:
        assessor = Assessor(
            phase="b",
            samples=samples(),
            pictures={},
            backend=backend or Backend(kind="unknown", base_url=url),
            keeper=keeper,
            limits=limits,
        )
        return [await assessor.assess(Candidate(id=name, thinking=thinking), lambda *_: None) for name in models]

    with Keeper(replace(QUICK, backoff=QUICK.backoff[:1])) as keeper:
        return {each.model.id: each for each in asyncio.run(all_of_them(keeper))}


def standing(assessment: Assessment) -> Standing:
    return stand("b", samples(), [assessment])[0]


def test_answers_earn_points_and_what_is_not_answered_as_asked_is_counted() -> None:
    with in_thread(answer, models=MODELS) as server:
        found = {name: standing(each) for name, each in assess(server.url, "right", "yes", "vague", "silent").items()}
    assert {name: (each.score, each.most, each.unparsable) for name, each in found.items()} == {
        "right": (12, 12, 0),
        "yes": (3, 12, 0),
        "vague": (0, 12, 9),
        "silent": (0, 12, 9),
    }
    assert found["right"].counts == {
        **{"categorised": 6, "categorised_of": 6, "extracted": 3, "extracted_of": 3},
        **{"date": 3, "date_of": 3, "name": 3, "name_of": 3},
    }
    assert (found["yes"].counts["date"], found["yes"].counts["name"]) == (3, 0)
    assert all(each.assessment.status == "" and each.errors == each.timeouts == 0 for each in found.values())


def test_a_call_over_its_time_scores_nothing_and_spoils_no_other_call() -> None:
    limits = Limits(timeout=0.3, second_look=0.01, most_timeouts=50)
    with in_thread(answer, models=MODELS) as server:
        began = time.monotonic()
        found = standing(assess(server.url, "hangs-then-knows", limits=limits)["hangs-then-knows"])
        waited = time.monotonic() - began
    assert (found.timeouts, found.errors, found.unparsable) == (6, 0, 0)
    assert (found.score, found.counts["categorised"], found.counts["extracted"]) == (3, 0, 3)
    assert 6 * 0.3 <= waited < 6 * 0.3 + 5
    assert found.seconds is not None and found.seconds >= 0.3


def test_a_model_with_too_many_timeouts_is_aborted_and_not_asked_again() -> None:
    with in_thread(answer, models=MODELS) as server:
        found = assess(server.url, "hangs", "right")
        asked = sum(request.body["model"] == "hangs" for request in server.requests)
    assert (found["hangs"].status, found["hangs"].reason, found["hangs"].asked) == ("aborted", "3 timeouts", 5)
    assert len(found["hangs"].predictions) == 9 and asked == 6
    assert found["right"].status == ""
    ranks = [(each.assessment.model.id, each.position) for each in stand("b", samples(), list(found.values()))]
    assert ranks == [("right", 1), ("hangs", None)]


def test_errors_of_a_server_that_lives_are_counted_to_the_end() -> None:
    with in_thread(answer, models=MODELS) as server:
        found = {name: standing(each) for name, each in assess(server.url, "broken", "refuses", "drops").items()}
        looks = sum(request.path == "/v1/models" for request in server.others)
    assert {name: (each.errors, each.score, each.assessment.status) for name, each in found.items()} == {
        "broken": (9, 0, ""),
        "refuses": (6, 0, ""),
        "drops": (6, 0, ""),
    }
    # One look for each model that is opened, and a health check after every third error in a row; a refusal is none.
    assert looks == 3 + 3 + 0 + 1
    assert "no memory left" in found["broken"].assessment.predictions[0].error


def test_a_dead_endpoint_fails_its_model_after_two_looks_and_what_was_not_asked_scores_nothing() -> None:
    with in_thread(models=MODELS) as server:

        def dying(request: Received) -> str | Reply:
            if server.count > 4:
                server.get = {}
                return Reply(drop=True)
            return answer(request)

        server.script = dying
        found = assess(server.url, "right")["right"]
    assert (found.status, found.asked) == ("failed", 6)
    assert "does not answer any more" in found.reason
    judged = standing(found)
    assert (judged.score, judged.most, judged.errors, judged.position) == (3, 12, 3, None)


def test_models_that_the_server_does_not_have_are_unavailable_and_stop_nobody() -> None:
    with in_thread(answer, models=MODELS, get={"/version": {"version": "0.33"}}) as server:
        found = assess(server.url, "other", "absent", "right", backend=Backend(kind="vllm", base_url=server.url))
    assert [(each.status, each.asked) for each in found.values()] == [("unavailable", 0), ("unavailable", 0), ("", 9)]
    assert "does not serve 'other'" in found["other"].reason and "HTTP 404" in found["absent"].reason
    gone = assess(server.url, "right")["right"]
    assert gone.status == "failed" and "no server answers" in gone.reason


def test_thinking_models_get_room_and_are_asked_not_to_think_where_the_server_can() -> None:
    with in_thread(answer, models=MODELS) as server:
        for kind in ("mlx", "unknown"):
            backend = Backend(kind=kind, base_url=server.url, served_as={"a/thinker": "thinker"})
            assert standing(assess(server.url, "a/thinker", backend=backend, thinking=True)["a/thinker"]).score == 12
        bodies = [
            request.body for request in server.requests if "Below" in request.prompt or "Extract" in request.prompt
        ]
    assert {body["model"] for body in bodies} == {"thinker"}
    assert {(body["max_tokens"], "Extract" in str(body["messages"])) for body in bodies} == {(1024, False), (256, True)}
    assert [body.get("chat_template_kwargs") for body in bodies] == 9 * [{"enable_thinking": False}] + 9 * [None]
    assert {body["temperature"] for body in bodies} == {0.0}
    assert all([message["role"] for message in body["messages"]] == ["user"] for body in bodies)


DYING = """
import os, signal, time
from pathlib import Path

DEATHS = Path(__file__).with_suffix(".deaths")

def read(request):
    first = "Extract" in request.prompt and not DEATHS.exists()
    if first or "Letter 0" in request.prompt:
        DEATHS.touch()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    return "yes"
"""


def test_a_server_of_ours_that_dies_is_started_again_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dying.py").write_text(DYING)
    model = "python:dying.py:read"
    limits = Limits(timeout=20.0, errors_before_check=1)
    found = assess("", model, limits=limits, backend=Backend(kind="loupe"))[model]
    assert [each.outcome for each in found.predictions[:7]] == ["ok", "error", "ok", "ok", "ok", "ok", "error"]
    assert (found.status, found.asked) == ("failed", 7)
    assert "given up" in found.reason
    # The server's log and record are not in the user's folder.
    assert {path.name for path in tmp_path.iterdir()} <= {"cache", "dying.py", "dying.deaths", "__pycache__"}


def made(model: str, *right: bool, elapsed: float = 1.0, status: str = "") -> Assessment:
    """Categorisation alone, right or wrong."""
    predictions = [Prediction(sample=str(n), text="yes" if each else "no", seconds=n) for n, each in enumerate(right)]
    return Assessment(
        model=Candidate(id=model),
        predictions=predictions,
        asked=len(right),
        elapsed=elapsed,
        status=status,  # type: ignore[arg-type]
    )


def test_equal_scores_share_a_rank_and_the_faster_one_stands_first() -> None:
    asked = [Sample(id=str(n), truth={"match": True, "type": "invoice"}) for n in range(4)]
    all_right = (True,) * 4
    standings = stand(
        "a",
        asked,
        [
            made("slow", True, True, False, False, elapsed=9),
            made("b", True, True, False, True),
            made("c", *all_right, status="aborted"),
            made("best", *all_right),
            made("quick", False, False, True, True, elapsed=2),
            made("a", False, False, True, True, elapsed=2),
        ],
    )
    order = [(each.position, each.assessment.model.id) for each in standings]
    assert order == [(1, "best"), (2, "b"), (3, "a"), (3, "quick"), (3, "slow"), (None, "c")]
    assert standings[0].counts == {"TP": 4, "FN": 0, "TN": 0, "FP": 0}
    assert standings[0].interval == pytest.approx((0.5101, 1.0), abs=1e-4)
    assert standings[0].seconds == 1.5
    pairs = [
        (pair.first.assessment.model.id, pair.second.assessment.model.id, pair.p) for pair in like_neighbours(standings)
    ]
    assert pairs[0] == ("best", "b", 1.0) and len(pairs) == 4


def test_a_model_that_is_clearly_better_is_no_like_neighbour() -> None:
    asked = [Sample(id=str(n), truth={"match": True, "type": "invoice"}) for n in range(6)]
    standings = stand("a", asked, [made("good", *[True] * 6), made("bad", *[False] * 6)])
    assert like_neighbours(standings) == []


def test_models_that_are_half_right_are_told_apart_by_points_where_no_document_is_fully_right() -> None:
    documents = [Document(path=Path(f"p{number}.png"), positive=True) for number in range(12)]
    known = {each.id: Known(text="x", date="2025-11-26", name="Foo") for each in documents}
    asked = list(text_samples(documents, known, Rules(document_type="invoice")))

    def said(model: str, *answers: str) -> Assessment:
        predictions = [Prediction(sample=each.id, text=answers[n % 2]) for n, each in enumerate(asked)]
        return Assessment(model=Candidate(id=model), predictions=predictions, asked=len(asked))

    (pair,) = like_neighbours(stand("b", asked, [said("half", "yes", "{}"), said("none", "no", "{}")]))
    assert (pair.only_first, pair.only_second, pair.p) == (0, 0, 1.0)
    assert pair.points_p is not None and pair.points_p < 0.002 and pair.differs_in_points
    (pair,) = like_neighbours(stand("b", asked, [said("a", "yes", "{}"), said("b", "yes", "no")]))
    assert pair.points_p == 1.0 and not pair.differs_in_points


def test_lists_come_from_flags_then_a_file_then_the_configuration_then_loupe(tmp_path: Path) -> None:
    written = {
        "m.toml": 'textllm = ["x", {id = "y", thinking = true}]\n[served_as]\nx = "x:latest"\n',
        "m.json": '{"textllm": ["x", {"id": "y", "thinking": true}], "served_as": {"x": "x:latest"}}',
        "m.yaml": "textllm: [x, {id: y, thinking: true}]\nserved_as: {x: 'x:latest'}\n",
    }
    for name, text in written.items():
        (tmp_path / name).write_text(text)
        file = read_models(tmp_path / name)
        assert file.served_as == {"x": "x:latest"}
        chosen = choose_models("b", [], file, ModelFile(textllm=["z"]))
        assert [(each.id, each.thinking) for each in chosen.models] == [("x", False), ("y", True)]
    phase: Phase = "b"
    assert choose_models(phase, [], ModelFile(), ModelFile(textllm=["z"])).source == "loupe.toml"
    assert len(choose_models(phase, [], ModelFile(), ModelFile()).models) == 25
    flags = choose_models(phase, ["mlx-community/Qwen3-4B-4bit", "w", "w"], file, ModelFile())
    assert [(each.id, each.thinking) for each in flags.models] == [("mlx-community/Qwen3-4B-4bit", True), ("w", False)]


@pytest.mark.parametrize("text", ["vlms = []", 'vlm = "x"', "vlm = [''", 'vlm = [" "]'])
def test_a_wrong_file_of_models_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(UsageError, match=r"m\.toml"):
        read_models(tmp_path / "m.toml")


def test_a_back_end_must_fit_the_machine_and_an_endpoint_must_answer() -> None:
    refused: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: asyncio.run(choose_backend("", "http://127.0.0.1:9/v1", {})), EngineUnavailableError),
        (lambda: asyncio.run(choose_backend("", "ftp://x", {})), UsageError),
        (lambda: asyncio.run(choose_backend("openai", "", {})), UsageError),
    ]
    if not is_apple_silicon():
        refused += [(lambda kind=kind: asyncio.run(choose_backend(kind, "", {})), UsageError) for kind in ("", "mlx")]
    for choose, error in refused:
        with pytest.raises(error):
            choose()
    with in_thread(answer, models=MODELS) as server:
        named = [asyncio.run(choose_backend(kind, server.url, {})).kind for kind in ("mlx", "openai", "")]
    assert named == ["mlx", "unknown", "unknown"]
    assert asyncio.run(choose_backend("vllm", "", {})).server_kind("a") == "vllm"
    assert [Backend(kind="mlx").server_kind(phase) for phase in ("a", "b")] == ["mlx_vlm", "mlx_lm"]


def test_two_models_never_share_the_folder_of_a_run() -> None:
    labels = run_labels([Candidate(id=each) for each in ("a/good", "a_good", "A/good", "b")])
    assert len({each.casefold() for each in labels.values()}) == 4 and labels["b"] == "b"
    assert all(each.casefold().startswith("a_good-") for ident, each in labels.items() if ident != "b")


def selection_of(
    backend: Backend,
    keeper: Keeper,
    folder: Path,
    show: Callable[[str], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Selection:
    return Selection(
        documents=texts()[0],
        rules=Rules(document_type="invoice"),
        prepared=Prepared(images={}, texts={}, unread={}),
        folder=folder,
        backend=backend,
        keeper=keeper,
        limits=Limits(timeout=5.0, warm_up=20.0),
        show=show,
        say=say,
    )


class Stuck(Keeper):
    """A server that no signal ends, which no test can have."""

    def close(self, hurry: Callable[[], bool] = lambda: False) -> None:
        raise EngineUnavailableError("vLLM cannot be stopped: processes 7", hint="kill -9 7")


def test_a_server_that_cannot_be_stopped_is_said_and_the_next_model_asked(tmp_path: Path) -> None:
    said: list[str] = []
    with in_thread(answer, models=MODELS) as server:
        selection = selection_of(Backend(kind="unknown", base_url=server.url), Stuck(), tmp_path, say=said.append)
        models = ModelList(models=(Candidate(id="right"), Candidate(id="yes")), source="override")
        found = list(selection.assess("b", samples(), models, interrupted=lambda _: None))
    assert [each.status for each in found] == ["", ""] and len(said) == 2 and "kill -9 7" in said[0]
    assert [each.facts.get("beside") for each in found] == [None, "vLLM cannot be stopped: processes 7"]


def test_the_line_counts_the_seconds_of_loading_and_says_what_is_left(tmp_path: Path) -> None:
    shown: list[str] = []

    def script(request: Received) -> Reply:
        delay = 1.3 if "one word" in request.prompt[:30] else 0.4 * request.prompt.startswith("Below")
        return Reply(text=str(answer(request)), delay=delay)

    with in_thread(script, models=MODELS) as server:
        selection = selection_of(Backend(kind="unknown", base_url=server.url), Keeper(), tmp_path, show=shown.append)
        models = ModelList(models=(Candidate(id="right"),), source="override")
        list(selection.assess("b", samples(), models, interrupted=lambda _: None))
    assert shown[0] == "[1/1] right: loading" and "[1/1] right: loading, 0:01" in shown
    assert shown[-1] == "[1/1] right: 9/9" and any(re.search(r"3/9 · about 0:0\d left", line) for line in shown)


def test_a_saved_selection_says_which_engines_are_measured_against_their_own_drafts(tmp_path: Path) -> None:
    documents, known = texts()
    known[documents[0].id] = replace(known[documents[0].id], unverified=True, drafters=("a/good",))
    saved = SavedRuns(
        runs=tmp_path / "runs",
        phase="b",
        rules=Rules(document_type="invoice"),
        documents=documents,
        known=known,
        models=[Candidate(id="a/good"), Candidate(id="other")],
        timeout=5,
    )
    benchmark = open_selection(save_documents(saved))
    rows = [
        SampleScores(sample=each.id, tags=dict(each.tags), scores=[Score(measure="score", counts=(1.0, 1.0))])
        for each in benchmark.load(None)
    ]
    results = [
        summarise(benchmark, rows, Origin(benchmark="b", engine=engine, signature="", total=len(rows)))
        for engine in ("a_good", "other")
    ]
    assert [truth_cell(each) for each in results] == ["drafted the ground truth", "1 of 9 unverified"]
    assert "a_good has drafted that truth" in unverified_warning(results)


def test_a_selection_looks_on_this_machine_before_it_takes_auto_for_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_thread() as server:
        monkeypatch.setattr("loupe.engines.chat.discovery.PORTS", [server.port])
        monkeypatch.setattr("loupe.engines.chat.discovery.located.__defaults__", ([server.port],))
        assert asyncio.run(choose_backend("", "auto", {})).base_url == server.url

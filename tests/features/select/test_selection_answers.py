"""What servers send back that is no plain answer, against a real server on loopback: one call suffers, nobody else."""

from loupe.features.select.questions import LONGEST
from tests.features.select.selecting import MODELS, answer
from tests.features.select.test_selection_models import assess, standing
from tests.support.chat_server import Received, Reply, in_thread

NO_TEXT = b'{"choices":[{"message":{"content":"YES \xff\xfe"},"finish_reason":"stop"}]}'
THOUGHTS = "<think>" + "yes or no? " * 20_000 + "</think>"


def strange(request: Received) -> str | Reply:
    model, warming = request.body["model"], request.prompt.startswith("Answer with one word")
    knows = answer(Received(request.method, request.path, {}, request.data.replace(model.encode(), b"right")))
    if model == "bytes" and not warming:
        return Reply(raw=NO_TEXT, status=500 if "Extract" in request.prompt else 200)
    if model == "wordy" and not warming:
        return Reply(text=f"{THOUGHTS}{knows}\n" + "and so on. " * 20_000, message={"reasoning": "hm " * 50_000})
    if model == "picky" and request.body["max_tokens"] < 16:
        return Reply(status=400, error="max_tokens must be at least 16")
    if model == "strict" and warming:
        return Reply(status=422, error="a warm-up? no")
    return answer(request) if model == "absent" else knows


def test_answers_that_cannot_be_read_are_errors_of_their_calls_and_the_next_model_is_asked() -> None:
    with in_thread(strange, models=MODELS) as server:
        found = assess(server.url, "bytes", "right")
    assert {each.outcome for each in found["bytes"].predictions} == {"error"} and found["bytes"].status == ""
    assert any("is no JSON" in each.error for each in found["bytes"].predictions)
    assert standing(found["right"]).score == 12


def test_only_a_model_that_is_not_found_is_unavailable_before_it_was_asked() -> None:
    with in_thread(strange, models=MODELS) as server:
        found = assess(server.url, "picky", "strict", "absent")
    assert [(each.status, each.asked) for each in found.values()] == [("", 9), ("", 9), ("unavailable", 0)]
    assert [standing(found[name]).score for name in ("picky", "strict")] == [12, 12]


def test_of_an_endless_answer_only_what_is_read_is_kept_and_the_verdict_stays() -> None:
    with in_thread(strange, models=MODELS) as server:
        found = assess(server.url, "wordy")["wordy"]
    assert standing(found).score == 12
    for each in found.predictions:
        assert len(each.text) <= LONGEST and len(each.reasoning or "") <= LONGEST
        assert "characters" in each.error and not each.failed

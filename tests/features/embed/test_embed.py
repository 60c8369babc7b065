"""`loupe embed` against a real server on loopback: files, faults, resuming, and scores."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from loupe.engines.registry import load_profile
from loupe.errors import DatasetError, EngineUnavailableError, RunError, UsageError
from loupe.features.embed.corpus import Corpus
from loupe.features.embed.inputs import INSTRUCTION, Plan
from loupe.features.embed.stage import embed
from loupe.features.embed.vectors import read_embeddings
from loupe.inference.progress import Progress
from loupe.pipeline import Plan as Pipeline
from loupe.types import Prediction
from tests.support.answered import answered_run
from tests.support.command_line import command, complaint, environment, loupe
from tests.support.embedding_server import DIMENSION, Fault, embed_text, embedding_server, words_of


def figure(index: int, box: list[int], label: str = "image", text: str = "") -> dict[str, Any]:
    return {"index": index, "label": label, "bbox_2d": box, "content": text}


def make_run(root: Path, texts: list[str], regions: dict[int, list[dict[str, Any]]] | None = None) -> Path:
    """A run over these texts ("smudged" was not read); red and blue figures stand at (100, 100, 500, 400)."""
    folder = root / "docs"
    folder.mkdir()
    (folder / "loupe.toml").write_text('[benchmark]\ntitle = "Docs"\nversion = "1"\n')
    rows, answers = [], []
    for number, text in enumerate(texts):
        page = Image.new("RGB", (1000, 1000), "white")
        page.paste(("red", "blue")[number % 2], (100, 100, 500, 400))
        page.save(folder / f"doc{number}.png", compress_level=1)
        rows.append({"id": f"s{number}", "image": f"doc{number}.png", "task": "text", "reference": text})
        known = {"regions": regions[number]} if regions and number in regions else None
        answer = Prediction(sample=f"s{number}", text=text, outcome="ok" if text else "empty", response=known)
        if text == "smudged":
            answer = Prediction(sample=f"s{number}", outcome="error", error="smudged")
        answers.append(answer)
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = Pipeline(benchmark=str(folder), label="r", profile=load_profile("tesseract")[1], runs=root / "runs")
    return answered_run(plan, answers)


WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten pages, three of them with figures; tests write their vectors elsewhere."""
    regions = {
        0: [figure(0, [100, 100, 500, 400], "chart"), figure(1, [100, 410, 500, 440], "figure_title", "Sales")],
        1: [figure(5, [100, 100, 500, 400]), figure(6, [0, 0, 10, 10]), {"label": "image", "bbox_2d": "x"}],
        2: [figure(0, [0, 0, 900, 10], "text", "header")],
    }
    return make_run(tmp_path_factory.mktemp("run"), [f"{word} page of words" for word in WORDS], regions)


def write_queries(path: Path) -> Path:
    rows = [{"query_id": f"q{n}", "text": word, "relevant": {f"doc{n}_p0": 1}} for n, word in enumerate(WORDS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def ask(run: Path, output: Path, url: str = "", **options: Any) -> Corpus:
    plan = Plan(run=run, output=output, base_urls=(url,) if url else (), **options)
    return asyncio.run(embed(plan, Progress()))


def texts_asked(bodies: list[dict[str, Any]]) -> Counter[str]:
    return Counter(words_of(text) for body in bodies for text in body.get("input", []))


# --- the files


def test_every_file_has_its_shape_its_order_and_its_contents(run: Path, tmp_path: Path) -> None:
    queries = write_queries(tmp_path / "q.jsonl")
    out = run / "embeddings"
    with embedding_server() as server:
        ask(run, out, server.url, queries=queries, text_batch=4)
    for name, shape in [("corpus_ocr_text", (10, 64)), ("corpus_regions", (2, 64)), ("queries", (10, 64))]:
        matrix = np.load(out / f"{name}.npy")
        assert (matrix.shape, matrix.dtype.str, matrix.flags.c_contiguous) == (shape, "<f4", True)
        assert np.linalg.norm(matrix, axis=1) == pytest.approx(1, abs=1e-6)
    expected = embed_text("gamma page of words")
    assert np.load(out / "corpus_ocr_text.npy")[2] == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)
    assert json.loads((out / "page_ids.json").read_text()) == [f"doc{n}_p0" for n in range(10)]
    assert json.loads((out / "query_ids.json").read_text()) == [f"q{n}" for n in range(10)]
    lines = [json.loads(line) for line in (out / "region_metadata.jsonl").read_text().splitlines()]
    assert lines == [
        {
            "page_id": page,
            "region_index": index,
            "crop_path": f"embeddings/crops/{page}_idx{index}.png",
            "caption_text": caption,
            "label": label,
        }
        for page, index, caption, label in [("doc0_p0", 0, "Sales", "chart"), ("doc1_p0", 5, "", "image")]
    ]
    with Image.open(run / lines[0]["crop_path"]) as crop:
        assert (crop.size, crop.getpixel((0, 0)), crop.getpixel((399, 299))) == ((400, 300), (255, 0, 0), (255, 0, 0))
    meta = json.loads((out / "embedding_meta.json").read_text())
    assert (meta["counts"]["regions_too_small"], meta["counts"]["regions_left_out"], meta["errors"]) == (1, 1, [])
    inputs = [len(body["input"]) for body in server.bodies if "input" in body]
    assert sorted(inputs) == [2, 2, 4, 4, 4, 4]
    chats = [body["messages"][-1]["content"] for body in server.bodies if "messages" in body]
    assert sorted([part["type"] for part in content] for content in chats) == [["image_url"], ["image_url", "text"]]


def test_queries_carry_the_instruction_as_the_models_family_wants_it(run: Path, tmp_path: Path) -> None:
    queries = write_queries(tmp_path / "q.jsonl")
    with embedding_server() as server:
        ask(run, tmp_path / "vl", server.url, queries=queries, query_format="system", with_regions=False)
        (system, user), *_ = [body["messages"] for body in server.bodies if "messages" in body]
        assert (system["role"], system["content"][0]["text"]) == ("system", INSTRUCTION)
        assert user["content"] == [{"type": "text", "text": "alpha"}]
        server.bodies.clear()
        ask(run, tmp_path / "text", server.url, queries=queries, query_format="instruct", with_regions=False)
    assert server.bodies[-1]["input"][0] == f"Instruct: {INSTRUCTION}\nQuery: alpha"


def test_the_pooling_endpoint_answers_as_well(run: Path, tmp_path: Path) -> None:
    with embedding_server() as server:
        ask(run, tmp_path, server.url, endpoint="pooling", with_regions=False)
    assert set(server.paths) == {"/pooling"}
    assert len(read_embeddings(tmp_path).texts) == 10


def test_a_long_text_is_cut_at_its_end_by_tokens(tmp_path: Path) -> None:
    long = " ".join(f"word{n}" for n in range(300))
    run = make_run(tmp_path, [long, "short text"])
    with embedding_server() as server:
        ask(run, tmp_path / "out", server.url, max_model_len=100)
        sent = next(one for body in server.bodies for one in body["input"] if not isinstance(one, str))
        assert (len(sent), sent[0], sent[-1]) == (100, 1, 2)
        assert words_of(sent) == " ".join(long.split()[:98])
    assert read_embeddings(tmp_path / "out").meta.counts["truncated"] == 1
    with embedding_server(tokenizes=False) as server:
        ask(run, tmp_path / "whole", server.url, max_model_len=100)
    assert read_embeddings(tmp_path / "whole").meta.counts["long_but_not_counted"] == 1


def test_a_page_that_was_not_read_and_an_empty_one_are_rows_of_zeros_with_a_reason(tmp_path: Path) -> None:
    run = make_run(tmp_path, ["alpha", "smudged", ""])
    with embedding_server() as server:
        ask(run, tmp_path / "out", server.url)
    found = read_embeddings(tmp_path / "out")
    assert found.texts.any(axis=1).tolist() == [True, False, False]
    assert [(error.id, error.outcome) for error in found.meta.errors] == [("doc1_p0", "error"), ("doc2_p0", "empty")]
    assert "smudged" in found.meta.errors[0].error
    assert texts_asked(server.bodies) == {"alpha": 1}


# --- faults


def broken(change: Callable[[dict[str, Any]], None]) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    """A change of the first row of every answer that has several."""

    def rows(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        change(given[0])
        return given

    return rows


NAN = broken(lambda row: row.update(embedding=[None] * DIMENSION))
SHORT = broken(lambda row: row.update(embedding=[1.0] * 7))


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=429, headers={"Retry-After": "0"}),
        Fault(status=500),
        Fault(status=503, headers={"Retry-After": "0"}),
        Fault(body=b'{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}'),
        Fault(body=b"<html>"),
        Fault(rows=lambda rows: rows[:-1]),
        Fault(rows=lambda rows: [*rows[:-1], rows[0]]),
        Fault(rows=NAN),
        Fault(rows=SHORT),
    ],
    ids=["429", "500", "503", "nan", "no json", "fewer", "double", "null", "dimension"],
)
def test_a_passing_fault_costs_no_vector(fault: Fault, run: Path, tmp_path: Path) -> None:
    with embedding_server(lambda number, _: fault if number == 2 else None) as server:
        corpus = ask(run, tmp_path, server.url, with_regions=False, text_batch=4)
    assert all(not row.error for row in corpus.texts)
    found = read_embeddings(tmp_path)
    for number, word in enumerate(WORDS):
        expected = embed_text(f"{word} page of words")
        assert found.texts[number] == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)


def poison(word: str, fault: Fault) -> Callable[[int, dict[str, Any]], Fault | None]:
    return lambda _, body: fault if any(word in text for text in body.get("input", [])) else None


@pytest.mark.parametrize(
    ("fault", "outcome", "reason"),
    [
        (Fault(status=400, body=b'{"error": {"message": "too long"}}'), "rejected", "too long"),
        (Fault(rows=lambda rows: [{**row, "embedding": [0.0] * DIMENSION} for row in rows]), "error", "zeros"),
        (Fault(rows=lambda rows: [{**row, "embedding": [1.0] * 7} for row in rows]), "error", "7 numbers"),
        (Fault(rows=lambda rows: []), "error", "0 vectors came back"),
    ],
)
def test_a_poisonous_item_costs_itself_only(fault: Fault, outcome: str, reason: str, run: Path, tmp_path: Path) -> None:
    with embedding_server(poison("gamma", fault)) as server:
        ask(run, tmp_path, server.url, with_regions=False, dimension=DIMENSION)
        (error,) = read_embeddings(tmp_path).meta.errors
        assert (error.id, error.outcome, error.row, reason in error.error) == ("doc2_p0", outcome, 2, True)
        server.bodies.clear()
        server.fault = None
        ask(run, tmp_path, server.url, with_regions=False, dimension=DIMENSION)
    # What the server refuses is refused for good; what went wrong is tried again, and nothing else is.
    assert texts_asked(server.bodies) == ({} if outcome == "rejected" else {"gamma page of words": 1})


def test_a_server_that_fails_at_everything_ends_the_stage_and_says_so(run: Path, tmp_path: Path) -> None:
    wrong = Fault(rows=lambda rows: [{**row, "embedding": [1.0] * 7} for row in rows])
    lines = [{"query_id": f"q{n}", "text": f"word{n}"} for n in range(30)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with (
        embedding_server(lambda *_: wrong) as server,
        pytest.raises(EngineUnavailableError, match="20 requests in a row"),
    ):
        ask(run, tmp_path / "out", server.url, queries=tmp_path / "q.jsonl", dimension=DIMENSION, with_regions=False)
    assert not (tmp_path / "out/embedding_meta.json").exists()


def said(message: str, status: int) -> Fault:
    return Fault(status=status, body=json.dumps({"error": {"message": message, "code": status}}).encode())


def test_a_server_that_has_no_embeddings_is_asked_once(run: Path, tmp_path: Path) -> None:
    none = said("This server does not support embeddings. Start it with `--embeddings`", 501)
    with embedding_server(lambda *_: none) as server:
        with pytest.raises(EngineUnavailableError, match="Start it with `--embeddings`"):
            ask(run, tmp_path, server.url, with_regions=False)
        assert len(server.bodies) == 1


def test_a_text_that_is_too_long_for_the_server_costs_itself_and_no_pause(run: Path, tmp_path: Path) -> None:
    long = said("input (7500 tokens) is too large to process. increase the physical batch size", 500)
    with embedding_server(poison("gamma", long)) as server:
        ask(run, tmp_path, server.url, with_regions=False)
        (error,) = read_embeddings(tmp_path).meta.errors
        assert (error.id, error.outcome) == ("doc2_p0", "rejected")
        # The whole, and then halves of ten: 5 and 5, 2 and 3, 1 and 2, 1 and 1.
        assert len(server.bodies) <= 9


def test_what_failed_as_a_batch_is_not_waited_for_again_in_its_halves(run: Path, tmp_path: Path) -> None:
    with embedding_server(lambda *_: Fault(status=500, headers={"Retry-After": "0"})) as server:
        ask(run, tmp_path, server.url, with_regions=False)
        assert len(server.bodies) == 5 + 18


def test_a_pause_that_the_server_asks_for_ends_when_the_person_stops(run: Path, tmp_path: Path) -> None:
    progress = Progress()

    def busy(number: int, _: dict[str, Any]) -> Fault:
        progress.request_stop()
        return Fault(status=429, headers={"Retry-After": "60"})

    with embedding_server(busy) as server:
        began = time.monotonic()
        asyncio.run(embed(Plan(run=run, output=tmp_path, base_urls=(server.url,), with_regions=False), progress))
        assert time.monotonic() - began < 30
        # Nobody asks in halves for what nobody wants any more.
        assert len(server.bodies) == 1
    assert not (tmp_path / "embedding_meta.json").exists()


def test_where_a_key_is_refused_what_is_in_flight_is_kept(run: Path, tmp_path: Path) -> None:
    def refused(number: int, _: dict[str, Any]) -> Fault | None:
        return Fault(status=401) if number == 2 else Fault(delay=0.3, rows=lambda rows: rows)

    with embedding_server(refused) as server:
        with pytest.raises(EngineUnavailableError, match="refuses the key"):
            ask(run, tmp_path, server.url, with_regions=False, text_batch=2)
        assert len(server.bodies) == 2
        server.fault = None
        server.bodies.clear()
        ask(run, tmp_path, server.url, with_regions=False, text_batch=2)
    assert sum(texts_asked(server.bodies).values()) == len(WORDS) - 2


def test_where_every_page_failed_the_command_says_so_invents_no_dimension_and_makes_no_scores(
    run: Path, tmp_path: Path
) -> None:
    queries = write_queries(tmp_path / "q.jsonl")
    refused = poison("page", Fault(status=400))
    with embedding_server(refused) as server:
        words = ("embed", run, "-o", "out", "--queries", queries, "--base-url", server.url, "--no-regions", "--plain")
        done = loupe(*words, cwd=tmp_path)
        assert done.returncode == 3, done.stderr
        assert "all requests for the pages failed: no vectors" in done.stderr
        assert not (tmp_path / "out/retrieval.json").exists()
        server.fault = lambda *_: Fault(status=400)
        done = loupe("embed", run, "-o", "none", "--base-url", server.url, "--no-regions", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["shapes"]["texts"]) == (3, [10, 0])


def test_a_server_without_the_endpoint_and_one_that_refuses_everything_leave_nothing_settled(
    run: Path, tmp_path: Path
) -> None:
    with embedding_server(lambda *_: Fault(status=404)) as server:
        with pytest.raises(EngineUnavailableError, match="embeddings is not there"):
            ask(run, tmp_path, server.url, with_regions=False)
        server.fault = lambda *_: Fault(status=400)
        assert all(row.error for row in ask(run, tmp_path, server.url, with_regions=False).texts)
        server.fault = None
        assert not any(row.error for row in ask(run, tmp_path, server.url, with_regions=False).texts)


# --- again


def test_the_same_command_asks_for_nothing_twice_and_needs_no_server(run: Path, tmp_path: Path) -> None:
    with embedding_server() as server:
        ask(run, tmp_path / "out", server.url, with_regions=False)
        before = (tmp_path / "out/corpus_ocr_text.npy").read_bytes()
        queries = write_queries(tmp_path / "q.jsonl")
        ask(run, tmp_path / "out", server.url, queries=queries, with_regions=False)
        assert max(texts_asked(server.bodies).values()) == 1
        count = len(server.bodies)
        ask(run, tmp_path / "out", queries=queries, with_regions=False)
        assert len(server.bodies) == count
    assert (tmp_path / "out/corpus_ocr_text.npy").read_bytes() == before
    with pytest.raises(RunError, match=r"model: 'test-embedding' there, 'other' asked for"):
        ask(run, tmp_path / "out", model="other", with_regions=False)


def test_killed_and_started_again_it_asks_only_for_what_was_in_flight(tmp_path: Path) -> None:
    run = make_run(tmp_path, [f"page number{n}" for n in range(60)])
    with embedding_server(lambda *_: Fault(delay=0.02)) as server:
        words = command("embed", run, "--base-url", server.url, "--text-batch", "2")
        for kills in range(3):
            journal = run / "embeddings/vectors.jsonl"
            with subprocess.Popen(words, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.DEVNULL) as process:
                wanted = 8 * (kills + 1)
                end = time.monotonic() + 60
                while not (journal.exists() and journal.read_bytes().count(b"\n") > wanted):
                    assert time.monotonic() < end
                    time.sleep(0.005)
                process.send_signal(signal.SIGKILL)
        done = loupe(*words[3:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    asked = texts_asked(server.bodies)
    assert len(asked) == 60
    # Two requests with two texts each are in flight when the process dies.
    assert sum(asked.values()) - 60 <= 3 * 4
    assert len(read_embeddings(run / "embeddings").texts) == 60


# --- what people get wrong


def test_queries_and_page_ids_that_do_not_fit_are_named(run: Path, tmp_path: Path) -> None:
    out, path = tmp_path / "out", tmp_path / "q.jsonl"
    for line, error, message in [
        ('{"query_id": "q", "text": "x", "relevant": {"doc1_p1": 1}}', UsageError, "did you mean 'doc1_p0'"),
        ('{"query_id": "q", "text": " "}', DatasetError, r"q\.jsonl:1: query 'q' has no text"),
        ('{"query_id": "q", "text": "x", "relevant": {"doc1_p0": 0}}', DatasetError, "grades begin at 1"),
        ('{"query_id": "q", "text": "x"}\n' * 2, DatasetError, r"q\.jsonl:2: two queries"),
        ('{"query_id": 1}', DatasetError, r"q\.jsonl:1"),
        ("", DatasetError, "no queries"),
    ]:
        path.write_text(line)
        with pytest.raises(error, match=message):
            ask(run, out, queries=path, with_regions=False)


def test_damaged_files_are_refused_by_name(run: Path, tmp_path: Path) -> None:
    with embedding_server() as server:
        ask(run, tmp_path, server.url, with_regions=False)
    good = np.load(tmp_path / "corpus_ocr_text.npy")
    for bad, message in [
        (good[:-1], "9 rows for 10 ids"),
        (good * 2, "row 0 has length 2"),
        (np.where(np.arange(10)[:, None] == 3, 0, good), "row 3 has length 0"),
        (np.where(np.arange(10)[:, None] == 3, np.nan, good), "row 3 has length nan"),
        (good.astype("<f8"), "float64"),
    ]:
        np.save(
            tmp_path / "corpus_ocr_text.npy", bad if bad.dtype == "<f8" and "float64" in message else bad.astype("<f4")
        )
        with pytest.raises(DatasetError, match=message):
            read_embeddings(tmp_path)


def test_a_server_of_another_model_does_not_pass_off_the_vectors_at_hand_as_its_own(run: Path, tmp_path: Path) -> None:
    with embedding_server() as server:
        ask(run, tmp_path / "out", server.url, with_regions=False)
    [line] = [line for line in (tmp_path / "out/vectors.jsonl").read_text().splitlines() if '"settings"' in line]
    same, other = (
        load_profile("openai", {"serve": f"vllm:{model}"})[1]
        for model in (json.loads(line)["settings"]["model"], "org/other")
    )
    assert ask(run, tmp_path / "out", served=same, with_regions=False).texts
    with pytest.raises(RunError, match=r"vectors with other settings:\n  model: .*org/other"):
        ask(run, tmp_path / "out", served=other, with_regions=False)


def test_queries_made_with_other_settings_than_the_corpus_are_refused_unless_asked_for(
    run: Path, tmp_path: Path
) -> None:
    with embedding_server() as server:
        ask(run, tmp_path / "out", server.url, queries=write_queries(tmp_path / "q.jsonl"), with_regions=False)
    file = tmp_path / "out/embedding_meta.json"
    meta = json.loads(file.read_text())
    file.write_text(json.dumps(meta | {"fingerprint": meta["fingerprint"] | {"queries": "another"}}))
    with pytest.raises(DatasetError, match="other models or instructions"):
        read_embeddings(tmp_path / "out")
    assert read_embeddings(tmp_path / "out", mixed=True).queries is not None


def test_the_command_scores_vectors_also_without_a_run(run: Path, tmp_path: Path) -> None:
    write_queries(tmp_path / "q.jsonl")
    with embedding_server() as server:
        words = (
            "embed",
            run,
            "-o",
            "vectors",
            "--queries",
            "q.jsonl",
            "--base-url",
            server.url,
            "--no-regions",
            "--json",
        )
        done = loupe(*words, cwd=tmp_path)
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    scores = found["retrieval"]["scores"]
    assert [scores[system]["ndcg@5"]["value"] for system in ("text", "bm25")] == [1, 1]
    assert scores["random"]["recall@5"]["value"] == 0.5
    again = loupe("embed", "vectors", "--queries", "q.jsonl", "--against", "vectors", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["retrieval"]["scores"]["text"] == scores["text"]
    against = json.loads(again.stdout)["against"]["text"]["ndcg@10"]
    assert (against["difference"], against["p"], against["shared"]) == (0, 1, 10)
    assert json.loads((tmp_path / "vectors/retrieval.json").read_text())["draws"] == 1000
    error, hint = complaint(loupe("embed", "vectors", cwd=tmp_path))
    assert error == "existing vectors need --queries FILE to be scored" and hint
    error, _ = complaint(loupe("embed", "nowhere", cwd=tmp_path))
    assert error.startswith("no run at nowhere")


def test_two_documents_of_one_name_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    assert loupe("infer", "sample_pages", "-e", "pdf_text", cwd=tmp_path).returncode == 0
    refused = loupe("embed", "runs/pdf_text/sample_pages", cwd=tmp_path)
    assert "two pages have the id 'receipt_p0'" in refused.stderr and "--page-ids sample" in refused.stderr
    assert not (tmp_path / "runs/pdf_text/sample_pages/embeddings").exists()

"""The built-in profiles of models: prompts by benchmark and task, steps, versions, and what a change does to these."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from loupe.benchmarks import get_benchmark
from loupe.cli.shared.profile_text import lines_of, server_commands
from loupe.engines.adapters.steps import STEPS, check_adapters
from loupe.engines.chat.settings import Settings
from loupe.engines.registry import BUILT_IN, load_profile
from loupe.inference.prompts import TASK_PROMPTS, template_for
from loupe.metrics import vision_tokens
from tests.support.chat_server import in_thread
from tests.support.command_line import complaint, loupe

MODELS = ["glm-ocr", "paddleocr-vl", "deepseek-ocr2", "deepseek-ocr2-recipe", "deepseek-ocr", "vlm"]
PAGE = "Convert the document to markdown."
#: Engine: page to Markdown, DP-Bench, formula, table, handwritten line (the table in
#: docs/protocols/engines.md#engines).
PROMPTS = {
    "glm-ocr": [PAGE, "Text Recognition:", "Formula Recognition:", "Table Recognition:", "Text Recognition:"],
    "paddleocr-vl": [PAGE, "OCR:", "Formula Recognition:", "Table Recognition:", "OCR:"],
    "deepseek-ocr2": [PAGE, PAGE, "Free OCR.", "Free OCR.", "Free OCR."],
}
BENCHMARKS = ["omnidocbench", "dp_bench", "unimer_test", "pubtabnet", "iam_lines"]


def asked(engine: str, benchmark_id: str) -> str:
    benchmark = get_benchmark(benchmark_id)
    profile = load_profile(engine)[1]
    return template_for(benchmark.task, profile=profile, benchmark=benchmark, benchmark_id=benchmark_id)


@pytest.mark.parametrize("engine", PROMPTS)
def test_every_benchmark_is_asked_as_requested(engine: str) -> None:
    assert [asked(engine, benchmark) for benchmark in BENCHMARKS] == PROMPTS[engine]
    assert "JSON" in asked(engine, "nanonets_kie")


def test_prompts_and_server_arguments_are_those_of_the_protocol_to_the_letter() -> None:
    page = Path(__file__).parents[2] / "docs/protocols/engines.md"
    spec = re.sub(r"\n *(?=[^\s|])", " ", page.read_text(encoding="utf-8"))  # lines are wrapped
    for engine in PROMPTS:
        (row,) = re.findall(rf"^\| {engine} \|(.*)\|$", spec, re.MULTILINE)
        page_prompt, dp_bench, question, formula, table, fields, line = (
            cell.strip().strip("`") for cell in row.split("|")
        )
        assert [page_prompt, dp_bench, formula, table, line] == [asked(engine, each) for each in BENCHMARKS]
        assert (question, fields) == ("q", "KIE")
    for task in ("markdown", "formula", "table"):
        assert f"`{load_profile('vlm')[1].prompts[task]}`".replace("\n", "\\n") in spec
    servers = dict(re.findall(r"`[^`]*--model (\S+) --port 8000 ([^`]*)`", spec))
    for engine in PROMPTS:
        profile = load_profile(engine)[1]
        assert isinstance(profile, Settings)
        command = server_commands(profile)["vllm"]
        assert command == f"vllm serve {profile.model} --host 127.0.0.1 --port 8000 {servers[profile.model]}"


def test_any_other_model_is_asked_with_the_fallback_prompts() -> None:
    tasks = ["markdown", "markdown", "formula", "table"]
    assert [asked("vlm", benchmark) for benchmark in BENCHMARKS[:4]] == [TASK_PROMPTS[task] for task in tasks]


@pytest.mark.parametrize("engine", MODELS)
def test_a_profile_is_versioned_sourced_and_uses_known_steps_in_order(engine: str) -> None:
    profile = load_profile(engine)[1]
    assert isinstance(profile, Settings)
    assert (profile.version, profile.temperature) == (f"{engine}/1", 0.0)
    assert profile.sources and profile.title
    assert list(check_adapters(profile.adapters)) == profile.adapters
    assert set(profile.adapters) <= set(STEPS)


@pytest.mark.parametrize(
    ("overrides", "version"),
    [
        ({}, "glm-ocr/1"),
        ({"base_url": "http://127.0.0.1:9/v1", "concurrency": 1, "timeout": 5.0, "model": None}, "glm-ocr/1"),
        ({"image": "fit2048", "servers": {}, "gpus": "0"}, "glm-ocr/1"),
        ({"image": "none", "max_tokens": 100}, "glm-ocr/1+image+max_tokens"),
        ({"prompts": {"*": "Read."}}, "glm-ocr/1+prompts"),
    ],
)
def test_what_differs_from_a_profile_stands_behind_its_version(overrides: dict[str, object], version: str) -> None:
    assert load_profile("glm-ocr", overrides)[1].version == version


def test_a_copy_that_still_bears_our_version_tells_what_it_changed(tmp_path: Path) -> None:
    copy = (BUILT_IN / "glm-ocr.toml").read_text(encoding="utf-8").replace("max_tokens = 8192", "max_tokens = 99")
    (tmp_path / "mine.toml").write_text(copy, encoding="utf-8")
    assert load_profile(str(tmp_path / "mine.toml"))[1].version == "glm-ocr/1+max_tokens"
    (tmp_path / "mine.toml").write_text(copy.replace('"glm-ocr/1"', '"mine/1"'), encoding="utf-8")
    assert load_profile(str(tmp_path / "mine.toml"), {"top_k": 5})[1].version == "mine/1+top_k"


@pytest.mark.parametrize(
    ("changed", "part"),
    [({"system": "Be brief."}, "system"), ({"stop": ["\n"]}, "stop"), ({"extra_body": {"a": 1}}, "body")],
)
def test_what_is_too_long_for_a_signature_stands_there_as_a_digest(changed: dict[str, object], part: str) -> None:
    plain, one = load_profile("vlm")[1].signature(), load_profile("vlm", changed)[1].signature()
    assert part not in plain and len(one[part]) == 8 and {**one, part: ""} == {**plain, part: ""}
    text_first = load_profile("vlm", {"content_order": "text_first"})[1].signature()
    assert text_first == {**plain, "order": "text_first"}


def test_a_page_and_its_answer_fit_into_the_context_of_deepseek_ocr() -> None:
    profile = load_profile("deepseek-ocr")[1]
    assert isinstance(profile, Settings) and profile.max_tokens
    page = max(
        vision_tokens(width, height, "gundam", max_tiles=6).sequence for width, height in [(700, 9000), (2000, 2800)]
    )
    assert page == 933
    assert profile.max_tokens + page + 64 <= 8192


def test_what_differs_from_the_profile_is_said_and_signed_and_a_prompt_counts_by_its_text(tmp_path: Path) -> None:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("Read all of it.\n", encoding="utf-8")
    signed = []
    with in_thread("something", models=404) as server:
        words = ["infer", "sample_pages", "--limit", "1", "-e", "glm-ocr", "--base-url", server.url, "-o", "top_p=0.5"]
        for name, prompt in (("a", ["--prompt-file", "one.txt"]), ("b", ["--prompt-file", "two.txt"])):
            done = loupe(*words, *prompt, "--name", name, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            assert "glm-ocr is not as in glm-ocr/1: top_p: 1e-05 → 0.5" in done.stderr
            info = json.loads((tmp_path / f"runs/{name}/sample_pages/run.json").read_text(encoding="utf-8"))
            signed.append(info["signature"].replace(f"engine:{name}", ""))
            assert set(info["prompts"].values()) == {"Read all of it.\n"}
        assert {request.prompt for request in server.requests if request.number} == {"Read all of it.\n"}
    assert signed[0] == signed[1] and "|profile:glm-ocr/1+prompts+top_p|" in signed[0]
    both = loupe("infer", "sample_pages", "--prompt", "x", "--prompt-file", "one.txt", cwd=tmp_path)
    assert complaint(both) == ("--prompt and --prompt-file cannot be combined", "leave one of them out")
    (tmp_path / "empty.txt").write_text(" \n")
    empty = loupe("engine", "test", "glm-ocr", "--prompt-file", "empty.txt", cwd=tmp_path)
    assert complaint(empty)[0] == "--prompt-file empty.txt: nothing in it"
    twice = loupe("run", "sample_pages", "-e", "glm-ocr", "-o", "image=none", "--image", "none", cwd=tmp_path)
    assert complaint(twice)[0] == "-o image and --image set the same"


@pytest.mark.parametrize("engine", [*MODELS, "tesseract"])
def test_what_the_command_shows_is_a_profile_that_gives_the_same_engine(engine: str, tmp_path: Path) -> None:
    profile = load_profile(engine)[1]
    shown = "\n".join(lines_of(engine, profile))
    (tmp_path / "copy.toml").write_text(shown, encoding="utf-8")
    assert load_profile(str(tmp_path / "copy.toml"))[1] == profile


def test_the_command_shows_everything(tmp_path: Path) -> None:
    shown = loupe("engine", "show", "glm-ocr", cwd=tmp_path).stdout
    for piece in ('version = "glm-ocr/1"', "cef4d0ea", "Table Recognition:", "repetition_penalty = 1.1", "adapters = "):
        assert piece in shown
    assert "starts: vllm serve zai-org/GLM-OCR --host 127.0.0.1 --port 8000 --trust-remote-code" in shown
    facts = json.loads(loupe("engine", "show", "deepseek-ocr", "--json", cwd=tmp_path).stdout)
    assert facts["settings"]["extra_body"]["vllm_xargs"]["whitelist_token_ids"] == [128821, 128822]
    assert "--logits" in facts["server_commands"]["vllm"]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("top_p=abc", '-o top_p = "abc": must be a number, not text'),
        ("price={inpt=1}", "-o price: unknown key 'inpt'; did you mean 'input'?"),
    ],
)
def test_a_wrong_value_of_the_command_line_is_not_blamed_on_the_profile(option: str, said: str, tmp_path: Path) -> None:
    done = loupe("run", "sample_pages", "-e", "vlm", "-o", option, cwd=tmp_path)
    assert (done.returncode, done.stderr.strip()) == (2, f"error: {said}")

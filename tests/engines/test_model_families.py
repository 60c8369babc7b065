"""The profiles of model families by source (`NAME@source`): what each sends to a server, and what it says of itself."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loupe.benchmarks import get_benchmark
from loupe.cli.shared.profile_text import lines_of, server_commands
from loupe.engines.adapters.steps import apply_adapters, check_adapters
from loupe.engines.chat.settings import Settings
from loupe.engines.openai import open_engine
from loupe.engines.registry import BUILT_IN, built_in, load_profile, slug
from loupe.inference.prompts import template_for
from loupe.types import Request
from tests.support.asking import ask
from tests.support.chat_server import Received, Reply, chat_server
from tests.support.command_line import loupe

FOLDER = BUILT_IN / "models"
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
ROOT = Path(__file__).parents[2]
GREEDY: dict[str, Any] = {"temperature": 0.0}
HUNYUAN = {**GREEDY, "top_k": 1, "repetition_penalty": 1.0}
HUNYUAN_15 = {
    **GREEDY,
    **{"max_tokens": 32768, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.08, "skip_special_tokens": True},
}
DOTS = {"temperature": 0.1, "top_p": 1.0}
LIGHTON_3 = {"max_tokens": 12288, "chat_template_kwargs": {"enable_thinking": False}}
MAIN_BODY = "Extract all information from the main body"
CHANDRA = "OCR this image to HTML, arranged as layout blocks.  Each"
AS_READ = "Extract the text from the above document as if you were reading it naturally."
AS_IS = (2250, 1500)


def deepseek(size: int, window: int) -> dict[str, Any]:
    rule = {"ngram_size": size, "window_size": window, "whitelist_token_ids": [128821, 128822]}
    return {**GREEDY, "max_tokens": 7168, "skip_special_tokens": False, "vllm_xargs": rule}


#: Profile: the body beside model and messages (without a limit of its own: the benchmark's, 77), how the prompt begins,
#: the system message, and the size of a page of 2250 × 1500 as it is sent.
ASKED: Mapping[str, tuple[dict[str, Any], str, str | None, tuple[int, int]]] = {
    "chandra@vendor": ({**GREEDY, "max_tokens": 12384, "top_p": 0.1}, CHANDRA, None, (2240, 1512)),
    "chandra-2@vendor": ({**GREEDY, "max_tokens": 12384, "top_p": 0.1}, CHANDRA, None, (2240, 1512)),
    "deepseek-ocr@batch-eval": (deepseek(40, 90), "<|grounding|>Convert the document to markdown.", None, AS_IS),
    "deepseek-ocr@pdf": (deepseek(20, 50), "<|grounding|>Convert the document to markdown.", None, AS_IS),
    "dots-ocr@vendor": (
        {**DOTS, "max_completion_tokens": 16384},
        "<|img|><|imgpad|><|endofimg|>Please",
        None,
        (2240, 1512),
    ),
    "dots-ocr@client": (
        {**DOTS, "max_completion_tokens": 32768, "top_p": 0.9},
        "<|img|><|imgpad|><|endofimg|>Please",
        None,
        (2240, 1512),
    ),
    "dots-mocr@opb": (
        {**DOTS, "max_completion_tokens": 32768},
        "<|img|><|imgpad|><|endofimg|>Please",
        None,
        (2240, 1512),
    ),
    "dots-mocr@mdpbench": (
        {**DOTS, "max_completion_tokens": 16384},
        "<|img|><|imgpad|><|endofimg|>Please",
        None,
        (2240, 1512),
    ),
    "hunyuan-ocr@vendor": ({**HUNYUAN, "max_tokens": 16384, "top_p": 0.95, "seed": 1234}, MAIN_BODY, "", AS_IS),
    "hunyuan-ocr@mdpbench": ({**HUNYUAN, "max_tokens": 77}, MAIN_BODY, "", AS_IS),
    "hunyuan-ocr-1.5@vendor": (HUNYUAN_15, "提取文档图片中正文的所有信息", "", AS_IS),
    "hunyuan-ocr-1.5@opb": (HUNYUAN_15, "提取文档图片中正文的所有信息", "", (2048, 1365)),
    "lighton-ocr-2@image-only": ({"max_tokens": 77}, "", None, (1540, 1027)),
    "lighton-ocr-2@mdpbench": ({**GREEDY, "max_tokens": 4096, "top_p": 0.9}, MAIN_BODY, "", AS_IS),
    "lighton-ocr-3@opb": ({**LIGHTON_3, "temperature": 0.1, "top_p": 1.0}, "grounding", None, AS_IS),
    "lighton-ocr-3@card": ({**LIGHTON_3, "temperature": 0.2, "top_p": 0.9}, "", None, AS_IS),
    "nanonets-ocr@omnidocbench": (
        {**GREEDY, "max_tokens": 15000, "repetition_penalty": 1.0},
        AS_READ,
        "You are a helpful assistant.",
        AS_IS,
    ),
    "nanonets-ocr@mdpbench": ({**GREEDY, "max_tokens": 15000}, AS_READ, None, AS_IS),
    "nanonets-ocr2@card": ({**GREEDY, "max_tokens": 15000}, AS_READ, None, AS_IS),
    "nanonets-ocr2@opb": ({**GREEDY, "max_tokens": 15000, "repetition_penalty": 1.0}, AS_READ, None, (2048, 1365)),
    "olmocr-2@pipeline": (
        {"temperature": 0.1, "max_tokens": 8000},
        "Attached is one page of a document",
        None,
        (1288, 859),
    ),
}
#: These run vendors' packages, whose calls are tested with their kinds.
PACKAGES = {
    "deepseek-ocr-2@batch-eval": ("environment", {"ngram_size": 40, "window_size": 90, "tile": 768}),
    "deepseek-ocr-2@omnidocbench": ("environment", {"ngram_size": 0, "mode": "gundam", "tile": 768}),
    "glm-ocr@opb": ("environment", {"concurrency": 1, "repetition_penalty": 1.1, "top_k": 1, "max_tokens": 8192}),
    "mineru2.5@vendor": ("environment", {"backend": "vlm-http-client", "reads": ["image"], "dpi": 200}),
    "mineru2.5-pro@opb": ("environment", {"backend": "vlm-http-client", "reads": ["image"], "dpi": 200}),
    "paddleocr-vl-1.6@opb": ("environment", {"pipeline_version": "v1.6", "backend": "vllm-server", "dpi": 144}),
    "paddleocr-vl-1.6@package": ("environment", {"pipeline_version": "v1.6", "backend": "native", "dpi": 144}),
}


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Received]:
    """What a server gets of each profile for one page of OmniDocBench."""
    page = tmp_path_factory.mktemp("page") / "page.png"
    Image.new("L", AS_IS, 255).save(page)
    benchmark = get_benchmark("omnidocbench")

    async def main() -> dict[str, Received]:
        profiles = {name: load_profile(name)[1] for name in ASKED}
        listed = {
            "data": [{"id": model} for model in sorted({str(getattr(each, "model", "")) for each in profiles.values()})]
        }
        found = {}
        async with chat_server("hello", models=listed) as server:
            for name in ASKED:
                profile = load_profile(name, {"base_url": server.url})[1]
                assert isinstance(profile, Settings)
                prompt = template_for("markdown", profile=profile, benchmark=benchmark, benchmark_id="omnidocbench")
                async with open_engine(profile) as engine:
                    await engine.predict(Request(id=name, prompt=prompt, images=(page,), max_tokens=77))
                found[name] = server.requests[-1]
        return found

    return asyncio.run(main())


def test_every_profile_of_the_folder_is_in_one_of_the_tables() -> None:
    assert sorted([*ASKED, *PACKAGES]) == NAMES


@pytest.mark.parametrize("name", ASKED)
def test_a_profile_sends_what_its_source_says(name: str, sent: dict[str, Received]) -> None:
    body, prompt, system, size = ASKED[name]
    received = sent[name]
    assert {key: value for key, value in received.body.items() if key not in ("model", "messages")} == body
    assert received.prompt.startswith(prompt) and bool(received.prompt) == bool(prompt)
    first = received.body["messages"][0]
    assert first == {"role": "system", "content": system} if system is not None else first["role"] == "user"
    ((_, data),) = received.images
    assert Image.open(io.BytesIO(data)).size == size
    text_first = received.parts[0]["type"] == "text"
    assert text_first == (name == "olmocr-2@pipeline")


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_is_called_with_the_settings_of_its_source(name: str) -> None:
    kind, settings = PACKAGES[name]
    profile = load_profile(name)[1]
    assert profile.kind == kind
    assert {key: profile.defining().get(key, getattr(profile, key, None)) for key in settings} == settings


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_names_its_source_and_itself(name: str, tmp_path: Path) -> None:
    label, profile = load_profile(name)
    assert label == name == slug(name) and profile.version == f"{name}/1" and built_in(profile.version) == profile
    assert profile.title and any(re.search(r"\b20\d\d-\d\d\b", each) for each in profile.sources), (
        "a source, and its date"
    )
    assert list(check_adapters(profile.adapters)) == profile.adapters
    assert f"`{name}`" in (ROOT / "docs/engines/models.md").read_text(encoding="utf-8")
    assert all("vllm serve" in command for command in server_commands(profile).values())
    # As it is shown it can be kept as a file of one's own, and is the same.
    (tmp_path / f"{name}.toml").write_text("\n".join(lines_of(name, profile)), encoding="utf-8")
    again = load_profile(str(tmp_path / f"{name}.toml"))[1]
    assert again.version == profile.version and again.defining() == profile.defining()


def test_the_prompts_that_differ_by_a_space_stay_apart(sent: dict[str, Received]) -> None:
    assert "footers. Tables" in sent["hunyuan-ocr@vendor"].prompt
    assert "footers.Tables" in sent["hunyuan-ocr@mdpbench"].prompt
    assert sent["hunyuan-ocr@mdpbench"].prompt == sent["lighton-ocr-2@mdpbench"].prompt
    # docs/protocols/engines.md says how long the prompt of dots.ocr is.
    assert len(sent["dots-ocr@vendor"].prompt.removeprefix("<|img|><|imgpad|><|endofimg|>")) == 888
    assert "normalized 0-1024." in sent["chandra@vendor"].prompt and "0-1000." in sent["chandra-2@vendor"].prompt


def test_a_run_is_filed_under_the_whole_name_and_what_it_needs_is_said(tmp_path: Path) -> None:
    async def main() -> tuple[str, str]:
        async with chat_server("hello", models={"data": [{"id": "tencent/HunyuanOCR"}]}) as server:
            words = ["run", "sample_pages", "-e", "hunyuan-ocr@vendor", "--base-url", server.url, "--limit", "1"]
            done = await asyncio.to_thread(lambda: loupe(*words, cwd=tmp_path))
            assert done.returncode == 0, done.stderr
            return done.stdout, done.stderr

    stdout, stderr = asyncio.run(main())
    assert (tmp_path / "runs/hunyuan-ocr@vendor/sample_pages/result.json").is_file()
    assert "profile:hunyuan-ocr@vendor/1" in stdout
    assert "hunyuan-ocr@vendor needs: vllm serve tencent/HunyuanOCR" in stderr and "not run on a GPU here" in stderr


# ---- attempts at other temperatures
LOOP = Reply(text="the harbour at low tide " * 40)
CUT = Reply(text="cut o", finish_reason="length")


def temperatures(server: Any) -> list[float]:
    return [each.body["temperature"] for each in server.requests if each.path.endswith("completions")]


def test_an_answer_that_is_cut_off_or_a_loop_is_asked_again_at_the_next_temperature() -> None:
    output, server = ask([LOOP, CUT, Reply(text="low tide")], retry_temperatures=[0.2, 0.45, 0.8])
    assert (output.text, temperatures(server)) == ("low tide", [0.0, 0.2, 0.45])
    assert output.discarded_tokens == (22, 14) and (output.response or {})["temperature_raised_to"] == 0.45
    bodies = [{**each.body, "temperature": 0} for each in server.requests if each.path.endswith("completions")]
    assert bodies[0] == bodies[1] == bodies[2]


def test_the_last_answer_counts_where_none_is_good_and_the_one_before_where_the_server_fails() -> None:
    output, server = ask([LOOP, CUT], retry_temperatures=[0.5])
    assert (output.text, temperatures(server)) == ("cut o", [0.0, 0.5])
    output, server = ask([CUT, Reply(status=500)], retry_temperatures=[0.5, 0.9])
    assert (output.text, output.discarded_tokens, temperatures(server)) == ("cut o", (0, 0), [0.0, 0.5])


@pytest.mark.parametrize(("reason", "asked"), [("truncated", 1), ("repeated", 2)])
def test_only_the_named_reason_asks_again(reason: str, asked: int) -> None:
    _, server = ask([LOOP, Reply(text="low tide")], retry_temperatures=[0.3], retry_if=[reason])
    assert len(temperatures(server)) == asked


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"retry_temperatures": [3.0]}, "retry_temperatures: 3 is not from 0 to 2"),
        (
            {"retry_temperatures": [0.5], "retry_truncated": 9000},
            "retry_truncated and retry_temperatures: one of the two",
        ),
        ({"retry_if": ["repeated"]}, "retry_if says when retry_temperatures are used, and there are none"),
    ],
)
def test_attempts_that_make_no_sense_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        load_profile("vlm", keys)


def test_attempts_and_an_empty_system_message_are_signed() -> None:
    plain = load_profile("vlm")[1].signature()
    hotter = load_profile("vlm", {"retry_temperatures": [0.2, 0.4], "retry_if": ["repeated"]})[1].signature()
    assert hotter == {**plain, "retry_t": "0.2-0.4-repeated"}
    assert load_profile("vlm", {"system": ""})[1].signature().keys() - plain.keys() == {"system"}


# ---- steps
def test_blocks_of_chandra_become_a_page() -> None:
    answer = (
        '<div data-bbox="0 0 9 1" data-label="Page-Header">Pilot book</div>\n'
        '<div data-bbox="0 1 9 2" data-label="Section-Header"><h2>Tides</h2></div>\n'
        '<div data-label="Text">High &amp; low</div>'
        '<div data-label="Equation-Block"><math display="block">a &lt; b</math></div>'
        '<div data-label="Text"><p>At <math>t_0</math> it turns.</p></div>'
        '<div data-label="Table"><table><tr><td><math>x</math></td></tr></table></div>'
        '<div data-label="Image"><img alt="A buoy &amp; a boat"/></div>'
        '<div data-label="Complex-Block"><div><p>Cut off'
    )
    profile = load_profile("chandra-2@vendor")[1]
    assert apply_adapters(answer, profile.adapters).split("\n\n") == [
        "## Tides",
        "High & low",
        "$$a < b$$",
        "At  $t_0$  it turns.",
        "<table><tr><td><math>x</math></td></tr></table>",
        "![A buoy & a boat]()",
        "Cut off",
    ]
    assert apply_adapters("# Plain <div>text</div>", ["chandra_layout"]) == "# Plain <div>text</div>"


def test_dots_keeps_or_leaves_out_the_margins_as_the_source_does() -> None:
    areas = [{"bbox": [0, 0, 9, 9], "category": kind, "text": kind} for kind in ("Page-header", "Text", "Page-footer")]
    read = {name: apply_adapters(json.dumps(areas), load_profile(name)[1].adapters) for name in NAMES if "dots" in name}
    assert read.pop("dots-mocr@mdpbench") == "Page-header\n\nText\n\nPage-footer"
    assert set(read.values()) == {"Text"}


@pytest.mark.parametrize(("step", "least"), [("hunyuan_repeats", 8000), ("hunyuan15_repeats", 2000)])
def test_hunyuans_repeats_are_cut_down_to_one_copy_from_a_length_on(step: str, least: int) -> None:
    long = "Tides. " * 3 + "ab" * least
    assert apply_adapters(long, [step]) == "Tides. " * 3 + "ab"
    short = "ab" * (least // 2 - 1)
    assert apply_adapters(short, [step]) == short
    nine = "x" * least + "".join(map(str, range(5000)))[:least] + "the harbour " * 9
    assert apply_adapters(nine, [step]) == nine

"""The check of server arguments (script/check_server_arguments.py): which command lines it takes from profiles."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from loupe.servers.templates import templates

SCRIPT = Path(__file__).parents[2] / "script" / "check_server_arguments.py"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_server_arguments", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vLLM 0.18: vllm serve a/b --max-model-len 9 (weights @ 4)", ["vllm", "serve", "a/b", "--max-model-len", "9"]),
        ("""vllm serve a/b --x '{"y": 1}'; and more""", ["vllm", "serve", "a/b", "--x", '{"y": 1}']),
        (
            "python -m sglang.launch_server --model-path a",
            ["python", "-m", "sglang.launch_server", "--model-path", "a"],
        ),
        ("package glmocr 0.1.5", None),
    ],
)
def test_a_start_command_is_found_in_a_sentence(check: ModuleType, text: str, words: list[str] | None) -> None:
    assert list(check.commands(text)) == ([words] if words else [])


def test_every_kind_and_every_profile_with_arguments_is_checked(check: ModuleType) -> None:
    assert {line.kind for line in check.template_lines()} == set(templates())
    lines = {line.where: line.words for line in check.profile_lines()}
    assert "--no-enable-prefix-caching" in lines["glm-ocr.toml [servers.vllm]"]
    assert lines["glm-ocr.toml [servers.sglang]"][0] == "--model-path"

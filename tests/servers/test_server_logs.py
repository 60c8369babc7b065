"""Why a server did not start, read from what real vLLM 0.32 and llama-server 0.1.0 wrote when they failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from loupe.servers.log import explain
from loupe.servers.templates import templates

LOGS = Path(__file__).with_name("server_logs")
#: What gdb adds to the log of a llama-server that crashes.
GDB = "[Thread debugging using libthread_db enabled]\n360\t../csu/libc-start.c: No such file or directory.\n"


def why(log: Path) -> tuple[str, str]:
    return explain(log, 0, templates()["vllm"])


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("vllm-no-memory", "ValueError: Available memory on node 0 (21.37/23.54 GiB)", ""),
        ("vllm-too-long", "ValidationError: 1 validation error for ModelConfig Value error, User-specified max", ""),
        (
            "llama-no-model",
            "gguf_init_from_file: failed to open GGUF file 'nowhere.gguf' (No such file or directory)",
            "check the name of the model",
        ),
        ("llama-no-projector", "failed to open GGUF file 'nowhere-mmproj.gguf'", "check the name of the model"),
        ("llama-no-cache", "llama_init_from_model: quantized V cache requires flash_attn to be enabled", ""),
    ],
)
def test_the_servers_own_error_is_what_is_shown(name: str, said: str, hint: str) -> None:
    line, advice = why(LOGS / f"{name}.log")
    assert said in line.partition("\n")[0]
    assert advice == hint
    assert "pid=" not in line and "Traceback" not in line and " I " not in line


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("vllm: error: unrecognized arguments: --no-such-flag", "vllm: error: unrecognized arguments", "--help"),
        ("error: invalid argument: --no-such-flag", "error: invalid argument: --no-such-flag", "--help"),
        ("Error: listen tcp 127.0.0.1:1: bind: address already in use", "address already in use", "--server-port"),
        (
            "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 80): address already in use",
            "[Errno 98] error while",
            "--server-port",
        ),
        (
            "Traceback (most recent call last):\n"
            "ValueError: The repository x contains custom code. Please pass the argument `trust_remote_code=True`\n"
            "The above exception was the direct cause of the following exception:\n"
            "RuntimeError: Engine core initialization failed. See root cause above.",
            "ValueError: The repository x",
            "--trust-remote-code",
        ),
        (
            "OSError: You are trying to access a gated repo.\nMake sure to have access to it.\n\n"
            "401 Client Error. (Request ID: Root=1)",
            "OSError: You are trying to access a gated repo. Make sure to have access to it.",
            "HF_TOKEN",
        ),
        (
            "ValueError: The repository x contains custom code which must be executed to load the model. You can "
            "inspect the repository.\n You can inspect it.\nPlease pass the argument `trust_remote_code=True`.\n",
            "ValueError: The repository x contains custom code",
            "--trust-remote-code",
        ),
        ("ERROR 11-22 21:34:19 [fa.py:1] no flash attention\nTraceback …\nOSError: disk is gone", "OSError: disk", ""),
    ],
)
def test_the_words_of_other_servers_are_known_too(tmp_path: Path, text: str, said: str, hint: str) -> None:
    (tmp_path / "log").write_text(
        f"(APIServer pid=1) INFO 11-22 21:32:56 [u.py:1] non-default args: {{'trust_remote_code': True}}\n{text}\n{GDB}"
    )
    line, advice = why(tmp_path / "log")
    assert said in line
    assert hint in advice if hint else advice == ""


def test_a_log_without_an_error_explains_nothing(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        f"INFO args: {{'trust_remote_code': True}}\n0.00.1.2 I srv load_model: loading\n{GDB}"
    )
    assert why(tmp_path / "log") == ("", "")

"""Command lines of managed servers: layers of template, profile and user, and what of them is recorded."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.cli import main
from loupe.engines.chat.settings import Settings
from loupe.engines.registry import load_profile
from loupe.engines.shared.redaction import without_secret_arguments
from loupe.errors import UsageError
from loupe.servers.keeper import started_once
from loupe.servers.log import explain
from loupe.servers.templates import templates
from loupe.servers.wanted import Argument, Wanted, as_words, from_table, from_words, merge, wanted_server
from tests.support.command_line import loupe, needs, trusted
from tests.support.served import make_benchmark

LOCAL = "--host 127.0.0.1 --port 7777"
NGRAM = "--logits-processors vllm.model_executor.models.deepseek_ocr:NGramPerReqLogitsProcessor"
PLAIN = "--no-enable-prefix-caching --mm-processor-cache-gb 0"


def wanted(engine: str = "openai", **keys: Any) -> Wanted:
    found = wanted_server(load_profile(engine, keys)[1])
    assert found is not None
    return found


def line(engine: str = "openai", **keys: Any) -> str:
    return " ".join(wanted(engine, **keys).shown(7777))


@pytest.mark.parametrize(
    ("serve", "expected"),
    [
        ("vllm:a/b", f"vllm serve a/b {LOCAL}"),
        ("sglang:a/b", f"python -m sglang.launch_server --model-path a/b {LOCAL}"),
        (
            "llama-server:a/b:q4",
            f"llama-server -hf a/b:q4 -a a/b:q4 {LOCAL} -ngl all -c 65536 -np 4 --jinja --no-context-shift --metrics",
        ),
        ("ollama:glm-ocr", "ollama serve"),
        ("mlx_vlm:a/b", f"mlx_vlm.server --model a/b {LOCAL}"),
        ("mlx-lm:a/b", f"mlx_lm.server --model a/b {LOCAL}"),
        pytest.param(
            "loupe:rapidocr", f"python -P -m loupe serve rapidocr --in . --name rapidocr {LOCAL}", marks=needs("serve")
        ),
    ],
)
def test_every_kind_is_started_as_its_template_says(serve: str, expected: str) -> None:
    assert line(serve=serve) == expected


@pytest.mark.parametrize(
    ("engine", "arguments"),
    [
        ("glm-ocr", "--trust-remote-code --disable-radix-cache --context-length 16384"),
        ("paddleocr-vl", "--trust-remote-code --disable-radix-cache"),
        ("deepseek-ocr", "--disable-radix-cache --context-length 8192"),
    ],
)
def test_the_same_holds_for_sglang(engine: str, arguments: str) -> None:
    assert line(engine, serve="sglang").endswith(f"{LOCAL} {arguments}")


def test_a_file_is_served_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("x.gguf", "mmproj.gguf"):
        (tmp_path / name).touch()
    served = line(serve="llama_server:x.gguf", server_args=["--mmproj=mmproj.gguf"])
    file = tmp_path / "x.gguf"
    assert served == (
        f"llama-server -m {file} -a {file} {LOCAL} -ngl all -c 65536 -np 4 --jinja --no-context-shift --metrics "
        f"--mmproj {tmp_path}/mmproj.gguf"
    )


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"serve": "llama-server:x.gguf"}, "llama-server: no file x.gguf"),
        ({"serve": "llama-server:./dir/x.gguf"}, "llama-server: no file ./dir/x.gguf"),
        ({"serve": "vllm:./x"}, "vllm: no file ./x"),
        ({"serve": "mlx_vlm:/nowhere/x"}, "mlx_vlm: no file /nowhere/x"),
        (
            {"serve": "llama-server:a/b-GGUF", "server_args": ["--mmproj", "p.gguf"]},
            "llama-server --mmproj: no file p.gguf",
        ),
        (
            {"serve": "llama-server:a/b-GGUF", "servers": {"llama-server": {"mmproj": "./p.gguf"}}},
            "llama-server --mmproj: no file ./p.gguf",
        ),
    ],
)
def test_a_file_that_is_not_there_is_refused_before_anything_starts(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=f"(?m)^--serve {re.escape(said)}$"):
        wanted(**keys)


def test_a_file_of_a_repository_is_no_file_here() -> None:
    assert "--hf-file x.gguf" in line(serve="llama-server:a/b", server_args=["--hf-file=x.gguf"])


def test_llama_server_gets_a_repository_that_has_gguf_files_or_none() -> None:
    assert line("glm-ocr", serve="llama-server").startswith(
        "llama-server -hf ggml-org/GLM-OCR-GGUF -a zai-org/GLM-OCR "
    )
    with pytest.raises(UsageError, match="reads GGUF files, but the name deepseek-ai/DeepSeek-OCR") as caught:
        wanted("deepseek-ocr", serve="llama-server")
    assert "--serve llama-server:NAME/REPOSITORY-GGUF" in caught.value.hint
    # Who names a repository knows it.
    assert "-hf somebody/Ocr " in line("deepseek-ocr", serve="llama-server:somebody/Ocr")


@pytest.mark.parametrize(
    ("engine", "arguments"),
    [
        ("glm-ocr", f"--trust-remote-code {PLAIN} --max-model-len 16384"),
        ("paddleocr-vl", f"--trust-remote-code {PLAIN} --max-num-batched-tokens 16384"),
        ("deepseek-ocr2", f"--trust-remote-code {PLAIN} --max-model-len 8192"),
        ("deepseek-ocr2-recipe", f"--trust-remote-code {PLAIN} --max-model-len 8192 {NGRAM}"),
        ("deepseek-ocr", f"{PLAIN} --max-model-len 8192 {NGRAM}"),
    ],
)
def test_a_profile_brings_the_arguments_of_its_makers(engine: str, arguments: str) -> None:
    profile = load_profile(engine)[1]
    assert isinstance(profile, Settings)
    assert line(engine, serve="vllm") == f"vllm serve {profile.model} {LOCAL} {arguments}"


def test_the_users_words_take_the_place_of_the_profiles_and_are_put_last() -> None:
    words = [
        "--max-model-len=8192",
        "--no-trust-remote-code",
        '--speculative-config={"method": "mtp"}',
        "--lora a",
        "b",
    ]
    found = wanted("glm-ocr", serve="vllm:./tests", server_args=words, gpus="0, 2", server_port=9)
    model = str(Path("tests").resolve())
    assert found.shown(9) == [
        *["vllm", "serve", model, "--host", "127.0.0.1", "--port", "9", "--served-model-name", "zai-org/GLM-OCR"],
        *["--tensor-parallel-size", "2", "--no-enable-prefix-caching", "--mm-processor-cache-gb", "0"],
        *["--max-model-len", "8192", "--no-trust-remote-code", "--speculative-config", '{"method": "mtp"}'],
        *["--lora", "a", "b"],
    ]
    environment = found.child_environment(9)
    assert (environment["CUDA_VISIBLE_DEVICES"], environment["VLLM_NO_USAGE_STATS"]) == ("0,2", "1")


def test_the_numbers_of_a_template_can_be_set_and_its_environment_follows() -> None:
    found = wanted(serve="ollama:x", servers={"ollama": {"slots": 8, "context": 4096}}, server_port="auto")
    environment = found.child_environment(5)
    assert (environment["OLLAMA_HOST"], environment["OLLAMA_NUM_PARALLEL"]) == ("127.0.0.1:5", "8")
    assert environment["OLLAMA_CONTEXT_LENGTH"] == "4096" and found.port == 0
    assert "-c 8192 -np 2" in line(serve="llama-server:x", servers={"llama-server": {"slots": 2, "context": 4096}})


def test_keys_written_as_settings_become_flags_as_their_type_says() -> None:
    table = {"a_b": True, "c": False, "d": {"x": 1}, "e": 0.5, "f": ["g", "h"]}
    assert as_words(from_table(table)) == ["--a-b", "--no-c", "--d", '{"x":1}', "--e", "0.5", "--f", "g", "h"]


flags = st.sampled_from(["--a", "--b-c", "--no-a", "--b_c", "-d"])
layers = st.lists(
    st.lists(st.builds(Argument, flags, st.tuples(st.sampled_from(["1", "x"])) | st.just(())), max_size=4)
)


@given(layers)
def test_of_several_layers_the_last_that_has_an_argument_decides(written: list[list[Argument]]) -> None:
    merged = merge(*written)
    for name in {argument.name for layer in written for argument in layer}:
        last = next(layer for layer in reversed(written) if any(each.name == name for each in layer))
        assert [each for each in merged if each.name == name] == [each for each in last if each.name == name]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"serve": "vlm:a"}, "no kind of server 'vlm'; did you mean 'vllm'?"),
        ({"serve": "vllm"}, "--serve vllm: which model?"),
        ({"serve": "vllm:a", "server_args": ["--port=1"]}, "server argument --port is set by Loupe"),
        ({"serve": "vllm:a", "server_args": ["fast"]}, "server argument 'fast': not an argument"),
        ({"serve": "ollama:a", "servers": {"ollama": {"slots": 0}}}, "slots = 0: must be a whole number from 1"),
        ({"serve": "vllm:a", "servers": {"vlm": {}}}, "no kind of server 'vlm'"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        wanted(**keys)
    assert caught.value.message.startswith(message) or message in caught.value.message


# ---- what is recorded


def test_only_what_can_change_an_answer_defines_a_run(tmp_path: Path) -> None:
    plain = wanted("glm-ocr", serve="vllm")
    same = wanted(
        "glm-ocr",
        serve="vllm",
        server_args=["--gpu-memory-utilization=0.5", "--max-num-seqs 4", "--api-key=s"],
        server_port=9,
        startup_timeout=9.0,
        server_program="/elsewhere/vllm",
    )
    assert (same.defining, same.signature) == (plain.defining, plain.signature)
    for argument in ("--dtype=half", "--max-model-len=9", "--unknown-thing"):
        other = wanted("glm-ocr", serve="vllm", server_args=[argument])
        assert other.defining != plain.defining and other.signature != plain.signature
    assert wanted("glm-ocr", serve=f"vllm:{tmp_path}").defining["server_model"] == str(tmp_path)


def test_keys_stand_in_no_record() -> None:
    keys = {"server_args": ["--api-key=hidden", "--hf-token hidden"], "servers": {"vllm": {"api_key": "hidden"}}}
    profile = load_profile("glm-ocr", {"serve": "vllm", **keys})[1]
    found = wanted_server(profile)
    assert found is not None and "hidden" in found._words(1)
    assert "hidden" not in json.dumps([found.shown(1), found.defining, profile.stored(), profile.defining()])


@given(st.lists(st.sampled_from(["--api-key", "--key=a", "--max-tokens", "-k", "a", "--hf_token b", "--x=a"])))
def test_redaction_hides_every_value_of_a_key_and_nothing_else(words: list[str]) -> None:
    shown = without_secret_arguments(words)
    assert len(shown) == len(words)
    for place, (before, after) in enumerate(zip(words, shown, strict=True)):
        secret = before in ("--key=a", "--hf_token b") or (before == "a" and place and words[place - 1] == "--api-key")
        assert ("[key]" in after) == bool(secret) and (secret or before == after)


def test_engines_are_ordered_so_that_each_server_starts_once() -> None:
    names = [("glm-ocr", "vllm"), ("rapidocr", ""), ("paddleocr-vl", "vllm"), ("glm-ocr", "vllm"), ("pdf_text", "")]
    profiles = [load_profile(name, {"serve": serve} if serve else {})[1] for name, serve in names]
    order = started_once(list(range(5)), lambda number: profiles[number])
    assert order == [0, 3, 1, 4, 2]


@pytest.mark.parametrize(
    ("log", "line", "hint"),
    [
        ("ValueError: Free memory on device (1/24 GiB) on startup is less", "Free memory", "less memory"),
        ("x\n[Errno 98] error while attempting to bind: address already in use\n", "address already", "auto"),
        ("Please pass the argument `trust_remote_code=True`", "trust_remote_code", "--trust-remote-code"),
        ("Cannot access gated repo for url", "gated", "HF_TOKEN"),
        ("vllm serve: error: unrecognized arguments: --fast", "--fast", "--help"),
        ("all is well", "", ""),
    ],
)
def test_known_messages_of_a_log_are_explained(tmp_path: Path, log: str, line: str, hint: str) -> None:
    (tmp_path / "server.log").write_text(f"old CUDA out of memory\n{log}")
    said, advice = explain(tmp_path / "server.log", len("old CUDA out of memory\n"), templates()["vllm"])
    assert line in said and hint in advice and bool(said) == bool(line)


# ---- the command


#: Stands in for a server program that is not here: it notes how it was called, and is `loupe serve`.
PROGRAM = f"""#!{sys.executable}
import json, os, sys
with open(os.environ["NOTE"], "w") as note:
    json.dump([sys.argv[1:], dict(os.environ), os.getcwd(), os.listdir()], note)
model, port = sys.argv[2], sys.argv[sys.argv.index("--port") + 1]
reader = os.environ["READER"]
words = ["serve", f"python:{{reader}}:read", "--name", model, "--port", port]
os.execv(sys.executable, [sys.executable, "-m", "loupe", *words])
"""


@needs("serve")
def test_a_run_starts_the_server_reads_with_it_and_records_it(tmp_path: Path) -> None:
    make_benchmark(tmp_path, ["a", "b"])
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "vllm"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    env = {
        **{"PATH": str(tmp_path / "bin"), "NOTE": str(tmp_path / "note"), "READER": str(tmp_path / "faulty.py")},
        **{"LOUPE_API_KEY": "hidden-key", "HF_TOKEN": "for-the-hub", "HUGGING_FACE_HUB_TOKEN": "not-named"},
        **{"XDG_CACHE_HOME": str(tmp_path / "cache"), "VLLM_PORT": "7", "VLLM_API_KEY": "nobody-asked"},
    }
    words = ["run", "./words.py", "--serve", "vllm:some/model", "--server-port", "auto", "--json"]
    words += ["-o", 'pass_env=["NOTE", "READER", "HF_TOKEN"]']
    done = loupe(*words, "--server-arg", "--dtype=half", "--server-arg=--api-key=hidden-key", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["measures"]["right"]["value"] == 1.0
    run = tmp_path / "runs/some_model/words"
    arguments, environment, folder, there = json.loads((tmp_path / "note").read_text())
    assert arguments[:2] == ["serve", "some/model"] and arguments[-4:] == ["--dtype", "half", "--api-key", "hidden-key"]
    assert (environment["HF_TOKEN"], environment["VLLM_PORT"]) == ("for-the-hub", "7")
    assert not {"LOUPE_API_KEY", "VLLM_API_KEY", "HUGGING_FACE_HUB_TOKEN"} & environment.keys()
    # Nothing that lies in the run or in the user's folder can be imported there, whatever Python it is.
    own = Path(folder)
    assert (own.parents[1], there) == (tmp_path / "cache" / "loupe" / "server-folders", []) and not own.exists()
    info, record = json.loads((run / "run.json").read_text()), json.loads((run / "server.json").read_text())
    assert info["defining"]["server_arguments"] == {"dtype": "half"} and "|server:vllm+" in info["signature"]
    assert info["facts"]["server_origin"] == "started" and " --api-key [key]" in info["facts"]["server_command"]
    assert (record["state"], record["version"] != "", record["startup_seconds"] > 0) == ("stopped", True, True)
    assert all("hidden-key" not in file.read_text() for file in run.rglob("*") if file.is_file())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--serve", "vllm:a", "--base-url", "http://127.0.0.1:1"], "--serve starts a server"),
        (["--serve", "vllm"], "--serve vllm: which model?"),
        (["--gpus", "0", "--base-url", "http://127.0.0.1:1"], "--gpus goes with --serve"),
        (["-e", "tesseract", "--serve", "vllm:a"], "engine 'tesseract' has no setting for --serve"),
        (["--serve", "vllm:a", "--server-port", "much"], "'much' is neither a port nor auto"),
    ],
)
def test_options_that_do_not_fit_are_one_line(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["infer", str(make_benchmark(tmp_path, ["a"])), "--runs", str(tmp_path / "runs"), *words]) == 2
    assert message in capsys.readouterr().err.splitlines()[0]


@needs("serve")
def test_stop_says_when_nothing_was_left_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "stop", "--runs", str(tmp_path)]) == 0
    assert capsys.readouterr().err == f"no run below {tmp_path} has a leftover server\n"


def test_words_of_a_value_belong_to_the_flag_before_them() -> None:
    assert from_words(["--a", "1", "2", "-c=3", "--temperature", "-1"]) == [
        Argument("--a", ("1", "2")),
        Argument("-c", ("3",)),
        Argument("--temperature", ("-1",)),
    ]


def test_a_folder_called_like_the_model_is_not_served_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zai-org/GLM-OCR").mkdir(parents=True)
    with pytest.raises(UsageError, match="would be loaded instead of the model zai-org/GLM-OCR, and its code would"):
        wanted("glm-ocr", serve="vllm")
    assert wanted("glm-ocr", serve="vllm:./zai-org/GLM-OCR").model == str(tmp_path / "zai-org/GLM-OCR")


def old_python() -> str:
    """A Python that puts the folder it starts in on its path, whatever the environment says; "" if none is here."""
    kept = map(str, sorted(Path("~/.pyenv/versions").expanduser().glob("3.10*/bin/python3")))
    named = [*kept, *filter(None, (shutil.which(f"python3.{minor}") for minor in (10, 9, 8)))]
    works = (each for each in named if subprocess.run([each, "-c", ""], capture_output=True).returncode == 0)
    return next(works, "")


@pytest.mark.skipif(not old_python(), reason="needs a Python before 3.11")
def test_an_old_python_imports_no_server_that_somebody_put_into_the_run_or_the_folder(tmp_path: Path) -> None:
    make_benchmark(tmp_path, ["a"])
    run = tmp_path / "runs" / "served" / "words"
    for folder in (tmp_path, run):
        (folder / "sglang").mkdir(parents=True)
        (folder / "sglang" / "__init__.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
        (folder / "sglang" / "launch_server.py").write_text("raise SystemExit('planted')\n")
    profile = {"kind": "openai", "serve": "sglang:some/model", "server_port": "auto", "server_program": old_python()}
    lines = [f"{key} = {json.dumps(value)}" for key, value in profile.items()]
    (tmp_path / "loupe.toml").write_text("\n".join(["[engines.served]", *lines]))
    trusted(tmp_path / "loupe.toml")
    done = loupe("infer", "./words.py", "-e", "served", cwd=tmp_path)
    assert done.returncode != 0 and "No module named" in done.stderr, done.stderr
    assert not (tmp_path / "imported").exists()

"""`--serve` for embed and compress, and `--size`: the servers that are started get exactly what was planned."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from loupe.engines.chat.settings import Settings
from loupe.engines.registry import load_profile
from loupe.errors import UsageError
from loupe.features.size.detection import card, this_gpu
from loupe.features.size.models_and_cards import gpu, model_facts
from loupe.features.size.plan import plan
from loupe.features.size.server_plan import plan_server
from loupe.servers.wanted import wanted_server
from tests.support.command_line import complaint, loupe, make_folder, needs
from tests.support.embedding_server import DIMENSION
from tests.support.report_runs import draw_page

#: A program called `vllm`: it writes down how it was started, then answers as the server that is asked for.
VLLM = f"""#!{sys.executable}
import json, os, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
here = Path(__file__).parent
(here / "started.json").write_text(json.dumps(sys.argv[1:]))
port, model = int(sys.argv[sys.argv.index("--port") + 1]), sys.argv[2]
if "pooling" in sys.argv:
    from tests.support.embedding_server import serve_alone
    serve_alone(port, model)
else:
    words = ["serve", "python:" + str(here / "reader.py") + ":right", "--name", model, "--port", str(port)]
    os.execv(sys.executable, [sys.executable, "-m", "loupe", *words])
"""
#: `nvidia-smi` of a machine with these cards: index, UUID, name, MiB, compute capability.
SMI = "#!/bin/sh\ncat <<'END'\n{}\nEND\n"
H100 = "0, GPU-aaaa, NVIDIA H100 80GB HBM3, 81559, 9.0"
B200 = "1, GPU-bbbb, NVIDIA B200, 183359, 10.0"
OLD_A100 = "2, GPU-cccc, NVIDIA A100-PCIE-40GB, 40960, 8.0"
L40S = "3, GPU-dddd, NVIDIA L40S, 46068, 8.9"
EMBEDDING = "Forturne/Qwen3-VL-Embedding-2B-FP8"


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with four cards, and a `vllm` that is none."""
    program(tmp_path / "bin", "nvidia-smi", SMI.format("\n".join([H100, B200, OLD_A100, L40S])))
    program(tmp_path / "bin", "vllm", VLLM)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


def started(machine: Path) -> list[str]:
    found: list[str] = json.loads((machine / "bin/started.json").read_text())
    return found


# --- which card, which model


def test_the_cards_of_the_machine_are_known_by_name_or_by_what_they_report(machine: Path) -> None:
    assert this_gpu((), {}) == gpu("H100") and card("auto", (), {}) == gpu("H100")
    assert this_gpu(("1",), {}) == this_gpu((), {"CUDA_VISIBLE_DEVICES": "GPU-bbbb"}) == gpu("B200")
    old = this_gpu((), {"CUDA_VISIBLE_DEVICES": "2,1"})
    assert (old.gb, old.without_fp8) == (40, ("NVIDIA A100-PCIE-40GB",))
    assert this_gpu(("0", "3"), {}).gb == 44 and this_gpu(("3",), {}).without_fp8 == ()
    with pytest.raises(UsageError, match="no GPU 7 among the 4"):
        this_gpu(("7",), {})


@pytest.mark.parametrize("visible", ["", " ", ",0"])
def test_an_empty_list_of_visible_cards_is_no_card_and_not_the_first_one(machine: Path, visible: str) -> None:
    with pytest.raises(UsageError, match="CUDA_VISIBLE_DEVICES is set and names no GPU"):
        this_gpu((), {"CUDA_VISIBLE_DEVICES": visible})
    assert this_gpu(("1",), {"CUDA_VISIBLE_DEVICES": visible}) == gpu("B200")


@pytest.mark.parametrize(
    ("smi", "said"),
    [
        (None, "no NVIDIA GPU on this machine (no nvidia-smi)"),
        ("#!/bin/sh\necho 'No devices were found'; exit 6\n", "nvidia-smi lists no GPU: No devices were found"),
        ("#!/bin/sh\necho '0, x, [N/A], [N/A], [N/A]'\n", "nvidia-smi lists no GPU"),
    ],
)
def test_without_a_gpu_one_line_says_so_and_what_to_do(
    smi: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin")
    if smi:
        program(tmp_path / "bin", "nvidia-smi", smi)
    for words in (
        ("size", "--gpu", "auto"),
        ("run", "sample_pages", "-e", "glm-ocr", "--serve", "vllm", "--size", "auto"),
    ):
        error, hint = complaint(loupe(*words, cwd=tmp_path))
        assert said in error and hint == "name the card that the server will have: H100, or its size in GB"
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "meant", "stored"),
    [
        (EMBEDDING, "qwen3-vl-embedding-2b", "fp8"),
        ("Qwen/Qwen3-VL-Embedding-2B", "qwen3-vl-embedding-2b", None),
        ("someone/qwen3-vl-embedding-8b-fp8-dynamic", "qwen3-vl-embedding-8b", "fp8"),
        ("Qwen3-VL-Embedding-8B-BF16", "qwen3-vl-embedding-8b", "bf16"),
        ("someone/GLM-OCR-FP8", "glm-ocr", "fp8"),
        ("glm-ocr", "glm-ocr", None),
    ],
)
def test_models_are_known_by_the_ids_that_people_use(name: str, meant: str, stored: str | None) -> None:
    found = model_facts(name)
    assert (found.name, found.stored) == (meant, stored)
    if "/" in name:
        assert plan(found, gpu("B200")).command.startswith(f"vllm serve {name} ")
    assert plan(found, gpu("B200")).dtype == (stored or "fp8")
    if stored == "fp8":
        with pytest.raises(UsageError, match="holds weights in FP8, not in BF16"):
            plan(found, gpu("B200"), dtype="bf16")


def test_no_other_model_is_taken_for_a_known_one() -> None:
    for name in (
        "a/GLM-OCR-2",
        "GLM-OCR-FP8x",
        "a/Qwen3-VL-Embedding",
        "ggml-org/GLM-OCR-GGUF",
        "a/b/glm-ocr-fp8-int4",
    ):
        with pytest.raises(UsageError, match="no model"):
            model_facts(name)


# --- what the server gets


def test_planned_arguments_take_the_place_of_the_profiles_and_the_users_come_last() -> None:
    _, profile = load_profile("glm-ocr", {"serve": "vllm", "server_args": ["--max-model-len=9000"], "gpus": "0,1"})
    assert isinstance(profile, Settings)
    wanted = wanted_server(plan_server(profile, "H100").profile)
    assert wanted is not None
    words = shlex.join(wanted.shown(8000))
    assert words == (
        "vllm serve zai-org/GLM-OCR --host 127.0.0.1 --port 8000 --trust-remote-code --no-enable-prefix-caching "
        "--mm-processor-cache-gb 0 --gpu-memory-utilization 0.9 --max-num-seqs 210 --max-num-batched-tokens 65536 "
        "--enable-chunked-prefill --quantization fp8 --tensor-parallel-size 2 --max-model-len 9000"
    )
    # Weights in fewer bits are another model: it stands in the signature.
    plain = wanted_server(profile)
    assert plain is not None and plain.signature != wanted.signature


@pytest.mark.parametrize(("size", "gb", "dtype"), [("24", 24, "fp8"), ("H100", 80, "fp8"), ("80:bf16", 80, "bf16")])
def test_what_is_started_is_what_size_plans(size: str, gb: int, dtype: str) -> None:
    _, profile = load_profile("glm-ocr-pipeline", {"serve": "vllm"})
    assert isinstance(profile, Settings)
    planned = plan(model_facts("glm-ocr"), gpu(str(gb)), dtype="bf16" if dtype == "bf16" else "fp8")
    found = plan_server(profile, size)
    assert found.layout_batch == planned.layout_batch
    wanted = wanted_server(found.profile)
    assert wanted is not None
    command = wanted.shown(1)
    flags = [word for word in planned.arguments if word.startswith("--")]
    for flag in flags:
        at = planned.arguments.index(flag)
        value = planned.arguments[at + 1 : at + 2]
        assert command.count(flag) == 1
        if value and not value[0].startswith("--"):
            assert command[command.index(flag) + 1] == value[0]


@pytest.mark.parametrize(
    ("settings", "size", "said"),
    [
        ({"serve": "sglang"}, "80", "--size plans the arguments of vLLM"),
        ({"serve": "vllm"}, "8", "--size 8: glm-ocr does not fit: 2.0 GB are missing"),
        ({"serve": "vllm"}, "RTX9999", "--size RTX9999: GPU RTX9999: no card of this name is known"),
        ({"serve": "vllm"}, "80:int4", "'int4' is no type of weights"),
        ({"serve": "vllm:a/b"}, "80", "--size 80: no model 'a/b'"),
    ],
)
def test_what_cannot_be_planned_is_refused(settings: dict[str, str], size: str, said: str) -> None:
    _, profile = load_profile("glm-ocr", settings)
    assert isinstance(profile, Settings)
    with pytest.raises(UsageError) as raised:
        plan_server(profile, size)
    assert said in raised.value.message


def test_a_server_for_vectors_is_started_as_such_or_refused() -> None:
    expected = {
        "vllm": "vllm serve a/b --host 127.0.0.1 --port 1 --runner pooling",
        "sglang": "python -m sglang.launch_server --model-path a/b --host 127.0.0.1 --port 1 --is-embedding",
        "ollama": "ollama serve",
    }
    for kind, command in expected.items():
        wanted = wanted_server(load_profile("openai", {"serve": f"{kind}:a/b"})[1], embedding=True)
        assert wanted is not None and shlex.join(wanted.shown(1)) == command
    wanted = wanted_server(load_profile("openai", {"serve": "llama-server:a/b-GGUF"})[1], embedding=True)
    assert wanted is not None and shlex.join(wanted.shown(1)).endswith("--metrics --embeddings -b 16384 -ub 16384")
    for kind in ("mlx_vlm", "mlx_lm", "loupe"):
        with pytest.raises(UsageError, match="gives no embeddings") as raised:
            wanted_server(load_profile("openai", {"serve": f"{kind}:a/b"})[1], embedding=True)
        assert raised.value.hint == "kinds: vllm, sglang, llama-server, ollama"


# --- the commands


def test_a_run_starts_what_was_planned_for_the_card_of_this_machine(machine: Path) -> None:
    make_folder(machine / "bin", count=2).rename(machine / "mydocs")
    words = ("-e", "glm-ocr", "--serve", "vllm", "--server-port", "auto", "--size", "auto")
    done = loupe("run", "mydocs", *words, cwd=machine)
    assert done.returncode == 0, done.stderr
    assert "glm-ocr: sized for 80 GB H100, weights in FP8: 104 sequences, 256 requests in flight" in done.stderr
    planned = plan(model_facts("glm-ocr"), gpu("H100")).arguments
    command = started(machine)
    assert set(planned) <= set(command)
    assert command[:2] == ["serve", "zai-org/GLM-OCR"]
    stored = json.loads((machine / "runs/glm-ocr/mydocs/run.json").read_bytes())
    assert stored["profile"]["concurrency"] == 256 and "--enable-chunked-prefill" in stored["facts"]["server_command"]
    # What the command line says of the client stays.
    done = loupe("run", "mydocs", *words, "-n", "3", "--fresh", cwd=machine)
    stored = json.loads((machine / "runs/glm-ocr/mydocs/run.json").read_bytes())
    assert done.returncode == 0 and stored["profile"]["concurrency"] == 3


@needs("embed")
def test_embed_starts_its_server_and_stops_it(machine: Path) -> None:
    make_folder(machine, count=3)
    assert loupe("run", "mydocs", "-e", "python:reader.py:right", cwd=machine).returncode == 0
    words = ("embed", "runs/python-reader.py_right/mydocs", "--no-regions", "--dimension", str(DIMENSION), "--json")
    serve = ("--serve", f"vllm:{EMBEDDING}", "--server-port", "auto", "--size", "auto")
    done = loupe(*words, *serve, cwd=machine, env={"VLLM_BASE_URL": "http://127.0.0.1:9"})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["shapes"]["texts"] == [3, DIMENSION] and found["meta"]["model"] == EMBEDDING
    assert found["meta"]["server"]["server_origin"] == "started"
    assert "embed: sized for 80 GB H100, weights in FP8: 64 figures in flight, 32 texts per request" in done.stderr
    planned = plan(model_facts(EMBEDDING), gpu("H100"))
    command = started(machine)
    assert set(planned.arguments) <= set(command) and command.count("--runner") == 1
    record = json.loads((machine / ".cache/loupe/servers/embed/server/server.json").read_bytes())
    assert record["state"] == "stopped"
    (machine / "bin/started.json").unlink()
    # Nothing is missing, so nothing is started.
    assert loupe(*words, *serve, cwd=machine).returncode == 0
    assert not (machine / "bin/started.json").exists()


@needs("embed")
def test_embed_refuses_what_makes_no_sense(machine: Path) -> None:
    make_folder(machine, count=1)
    assert loupe("run", "mydocs", "-e", "python:reader.py:right", cwd=machine).returncode == 0
    run = ("embed", "runs/python-reader.py_right/mydocs")
    for words, said in (
        (("--serve", "vllm"), "--serve vllm: which model?"),
        (("--serve", "loupe:rapidocr"), "gives no embeddings"),
        (("--size", "auto"), "--size goes with --serve"),
        (("--gpus", "0"), "--gpus goes with --serve"),
        (("--serve", f"vllm:{EMBEDDING}", "--base-url", "http://a:1"), "use only one of them"),
        (
            ("--serve", "vllm:zai-org/GLM-OCR", "--size", "80"),
            "glm-ocr can be planned for reading pages only, not for embedding",
        ),
    ):
        error, _ = complaint(loupe(*run, *words, cwd=machine))
        assert said in error


@needs("compress")
def test_compress_starts_its_server(machine: Path) -> None:
    make_folder(machine / "bin", count=1)
    draw_page(machine / "page.png", "A page")
    (machine / "page.txt").write_text("A page")
    words = ("--image", "page.png", "--ground-truth", "page.txt", "--mode", "base", "--json")
    done = loupe("compress", *words, "--serve", "vllm", "--server-port", "auto", cwd=machine)
    assert json.loads(done.stdout)["pages"][0]["outcome"] in ("ok", "empty"), done.stderr
    assert started(machine)[:2] == ["serve", "deepseek-ai/DeepSeek-OCR"]
    assert "--logits-processors" in started(machine)

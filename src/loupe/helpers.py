"""Decide what the processes that Loupe starts get of the user's environment: an allow-list, so no key is in it.

Every process starts with one of these functions; a test walks the source to prove it. docs/security.md#helper-programs
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from loupe.python_process import PATH_VARIABLE, python_path

#: What each group of variables is for. A name that ends with `*` stands for all that begin so.
_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    # Every program: where things are, which language, what kind of terminal.
    "plain": (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TZ", "TZDIR", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"),
        *("LC_COLLATE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME", "LC_ADDRESS", "LC_IDENTIFICATION"),
        *("LC_MEASUREMENT", "LC_NAME", "LC_PAPER", "LC_TELEPHONE", "LC_TERMINAL", "LC_TERMINAL_VERSION"),
        *("TERM", "COLUMNS", "LINES", "NO_COLOR", "TMPDIR", "TMP", "TEMP"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "NIX_LD", "NIX_LD_LIBRARY_PATH"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"),
        *("XDG_CONFIG_DIRS", "XDG_DATA_DIRS"),
        *("FONTCONFIG_FILE", "FONTCONFIG_PATH", "TYPST_FONT_PATHS", "TESSDATA_PREFIX"),
    ),
    "network": (
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"),
        *("NODE_EXTRA_CA_CERTS", "NIX_SSL_CERT_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"),
    ),
    # Cores, GPUs and memory, and the compiler of kernels.
    "compute": (
        *("OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "BLIS_*", "NUMEXPR_*", "VECLIB_*", "RAYON_*", "ORT_*"),
        *("CUDA_*", "NVIDIA_*", "NCCL_*", "CUDNN_*", "CUBLAS_*", "HIP_*", "ROCR_*", "ROCM_*", "HSA_*", "MIOPEN_*"),
        *("ONEAPI_*", "ZE_*", "SYCL_*", "PYTORCH_*", "TORCH_*", "TORCHINDUCTOR_*", "TRITON_*", "FLAGS_*"),
        *("MALLOC_ARENA_MAX", "MALLOC_ARENA_TEST", "MALLOC_CHECK_", "MALLOC_CONF", "MALLOC_MMAP_MAX_"),
        *("MALLOC_MMAP_THRESHOLD_", "MALLOC_PERTURB_", "MALLOC_TOP_PAD_", "MALLOC_TRIM_THRESHOLD_"),
        *("TOKENIZERS_PARALLELISM", "GPU_DEVICE_ORDINAL", "JAVA_HOME", "LD_PRELOAD"),
        *("CC", "CXX", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
    ),
    # Where models lie, and whether they may be fetched.
    "models": (
        *("HF_HOME", "HF_HUB_*", "HF_DATASETS_*", "HF_ASSETS_CACHE", "HF_XET_*", "HF_MODULES_CACHE", "HF_ENDPOINT"),
        *("HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_*", "SAFETENSORS_*", "MODELSCOPE_CACHE", "NLTK_DATA"),
        *("DOCTR_CACHE_DIR", "ONNXTR_CACHE_DIR", "EASYOCR_MODULE_PATH", "DOCLING_*", "PADDLE_PDX_*", "MINERU_*"),
    ),
    "loupe": ("LOUPE_DATA", "LOUPE_KATEX_DIR", "LOUPE_MAX_MEGAPIXELS", "LOUPE_DEBUG"),
    "python": (
        *(PATH_VARIABLE, "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONUTF8"),
        *("PYTHONUNBUFFERED", "PYTHONNOUSERSITE", "PYTHONUSERBASE", "PYTHONFAULTHANDLER", "PYTHONWARNINGS"),
    ),
    # What a program of the user's own may need to run as in the shell.
    "own": (
        *("PWD", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "NODE_PATH", "PERL5LIB", "GEM_HOME", "GEM_PATH"),
        *("R_LIBS", "PYENV_ROOT", "PYENV_VERSION", "SSH_AUTH_SOCK"),
    ),
    "desktop": (
        *("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "DESKTOP_SESSION"),
        *("XDG_CURRENT_DESKTOP", "XDG_SESSION_TYPE", "XDG_SESSION_ID", "XDG_SEAT", "XDG_VTNR", "KDE_FULL_SESSION"),
        *("KDE_SESSION_VERSION", "GNOME_DESKTOP_SESSION_ID", "WSL_DISTRO_NAME", "WSL_INTEROP"),
    ),
    "servers": (
        *("VLLM_*", "SGLANG_*", "SGL_*", "FLASHINFER_*", "LLAMA_*", "GGML_*", "OLLAMA_*", "MLX_*", "METAL_*"),
        *("GLOO_*", "UCX_*"),
    ),
    # The user's own settings of installers; what names another environment or project is left out.
    "uv": (
        *("UV_INDEX*", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX", "UV_OFFLINE"),
        *("UV_CACHE_DIR", "UV_NO_CACHE", "UV_LINK_MODE", "UV_PYTHON_INSTALL_DIR", "UV_PYTHON_PREFERENCE"),
        *("UV_INSECURE_HOST", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_KEYRING_PROVIDER", "UV_HTTP_*"),
        *("UV_REQUEST_TIMEOUT", "UV_CONCURRENT_*", "UV_TORCH_BACKEND", "UV_EXCLUDE_NEWER", "UV_NO_BUILD*"),
        # The desktop's bus leads to the keyring that holds the password of an index.
        *("UV_NO_BINARY*", "NETRC", "DBUS_SESSION_BUS_ADDRESS"),
    ),
    "ray": ("RAY_*", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"),
    "npm": ("npm_config_*", "NPM_CONFIG_*", "NPM_TOKEN", "NODE_AUTH_TOKEN"),
}
#: Names that may be keys, whatever family they belong to: one of these words in any part of the name. A token is none
#: beside a word of counting (MAX_TOKENS, NEW_TOKEN_RATIO). Only installers get such a name: their index may need it.
_KEY: Final = re.compile(
    r"KEY|SECRET|PASS|PWD|CRED|AUTH|JWT|BEARER|COOKIE|SESSION|SIGNATURE|PRIVATE|(API|ACCESS)_?TOKEN"
    r"|(^|_)(PAT|PW|PEM|PIN|OTP|SIG|SID)\d*(_|$)"
    r"|^(?!.*_(MAX|MIN|NUM|NEW|PER|RATIO|LIMIT|SIZE|COUNT|BATCH|BATCHED|BUDGET|THRESHOLD|CHUNK)(_|$)).*TOKEN(?!IZ)",
    re.I,
)
#: Names of variables that hold places. XDG's count only if they are absolute, fontconfig's are relative to its own.
_PLACES: Final = re.compile(r"^(?!XDG_|FONTCONFIG_).*(PATHS?|PREFIX|HOME|DIR|FILE|CACHE|DATA|BUNDLE|CERTS)$", re.I)
_KEYED: Final = ("uv", "npm")
#: Names that hold the address of a server: who is asked is said by an engine's setting, not found around it.
_ADDRESS: Final = re.compile(r"(^|_)UR[LI](_|$)", re.I)

#: What keeps libraries and programs from calling their makers: usage statistics, checks for updates. This is the only
#: list; what the user sets wins.
OFF: Final[Mapping[str, str]] = {
    "DO_NOT_TRACK": "1",  # SGLang, unstructured and many others
    "DISABLE_TELEMETRY": "1",  # Hugging Face
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "DISABLE_SAFETENSORS_CONVERSION": "1",  # transformers asks a service to convert weights
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime
    "RAY_USAGE_STATS_ENABLED": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "OLLAMA_NO_CLOUD": "1",  # a local server would pass pages on
    "PADDLE_PDX_DISABLE_MODEL_SOURCE_CHECK": "True",  # asks every place that has its models
    "GRADIO_ANALYTICS_ENABLED": "False",
    "SCARF_NO_ANALYTICS": "true",  # unstructured
    "UNSTRUCTURED_TELEMETRY_ENABLED": "false",
    "NO_ALBUMENTATIONS_UPDATE": "1",
    "YOLO_OFFLINE": "true",  # ultralytics
    "ANONYMIZED_TELEMETRY": "False",
    "LITELLM_TELEMETRY": "False",
    "OTEL_SDK_DISABLED": "true",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "npm_config_update_notifier": "false",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
}

#: The hint for a program that may miss a variable of the user's.
PASS_ON: Final = "if it needs a variable of yours, name it: -o 'pass_env=[\"NAME\"]'"


def environment(*groups: str, passed: Collection[str] = ()) -> dict[str, str]:
    """Return what a process gets: plain variables, those of `groups`, the off switches, and those named in `passed`."""
    wanted = ("plain", *groups)
    names = {name for group in wanted for name in _GROUPS[group]}
    families = tuple(name[:-1] for name in names if name.endswith("*"))
    keyed = tuple(name.rstrip("*") for group in wanted if group in _KEYED for name in _GROUPS[group])
    return dict(OFF) | {
        name: value if name in passed else _absolute(name, value)
        for name, value in os.environ.items()
        if name in names
        or name in passed
        or (name in OFF and not _KEY.search(name))
        or (name.startswith(families) and (name.startswith(keyed) or not (_KEY.search(name) or _ADDRESS.search(name))))
    }


def _absolute(name: str, value: str) -> str:
    """Return a variable's value with absolute places: many programs start in another folder."""
    if not _PLACES.search(name) or "://" in value:
        return value
    try:
        return os.pathsep.join(
            str(Path(each).absolute()) if ("/" in each and each[0] not in "~$") or Path(each or "/-").exists() else each
            for each in value.split(os.pathsep)
        )
    except OSError:  # the working folder was deleted, or this is no place
        return value


def for_children(*groups: str, passed: Collection[str] = ()) -> dict[str, str]:
    """Return what a process of Python gets that we choose: it imports nothing from the working folder."""
    found = environment("network", "compute", "models", "loupe", "python", *groups, passed=passed)
    return {**found, "PYTHONSAFEPATH": "1", PATH_VARIABLE: python_path(found)}


def for_own_program(passed: Collection[str] = ()) -> dict[str, str]:
    """Return what a program or function of the user's gets: it starts as in the shell, without keys."""
    return environment("network", "compute", "models", "loupe", "python", "own", "desktop", passed=passed)


def said_by(words: Sequence[str], *, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a short query of a program, outside the working folder, and return what it said.

    Raises OSError if it does not start, subprocess.TimeoutExpired if it takes longer.
    """
    program = Path(shutil.which(words[0]) or words[0]).absolute()
    return subprocess.run(
        [str(program), *words[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
        env=environment("compute"),
        cwd="/",
    )


def call_nobody(family: str) -> None:
    """Set the off switches that begin so in this process, which may be the user's; call it before the import."""
    for name, value in OFF.items():
        if name.startswith(family):
            os.environ.setdefault(name, value)

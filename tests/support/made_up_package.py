"""A made-up package and a reader that uses it: installed by uv from a folder of this machine, without any index."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

from loupe.engines.environments.places import Settings

#: What the reader does is what the page's question says.
READER = """
import json, os, signal, socket, sys, time
import quill

os.write(1, b"\\x00\\xff native noise at import\\n")
print("noise at import")

class Busy(Exception):
    outcome = "busy"

class Refused(Exception):
    outcome = "rejected"

def load(options):
    if options.get("missing"):
        raise FileNotFoundError("no weights at " + options["missing"])
    return read

def read(page):
    word, _, rest = page.prompt.partition(" ")
    if word == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if word == "hang":
        time.sleep(60)
    if word == "memory":
        return str(len(bytearray(2 << 30)))
    if word == "pid":
        return str(os.getpid())
    if word == "noise":
        os.write(1, b"\\x00" * (3 << 20))
        print("x" * (3 << 20), file=sys.stderr)
    if word == "gpu":
        time.sleep(0.5)
        return os.environ.get("CUDA_VISIBLE_DEVICES", "none")
    if word == "seen":
        return repr(sorted(os.environ)) + repr(sys.path) + repr(list(sys.modules)) + os.getcwd()
    if word == "reach":
        socket.create_connection((rest, 80), timeout=5)
    if word == "fork" and os.fork() == 0:
        return "child"
    if word == "busy":
        raise Busy("slow down")
    if word == "refused":
        raise Refused("no such language")
    if word == "nothing":
        return None
    if word == "list":
        return ["a", "b"]
    if word == "facts":
        return {"facts": {"a": "b"}}
    if word == "lines":
        low, high = [[0, 50], [90, 60]], [[0, 10], [90, 20]]
        lines = [{"box": low, "text": "below"}, {"box": high, "text": "above", "score": 0.5}]
        return {"lines": lines, "size": [100, 100]}
    if word == "answer":
        return json.loads(rest)
    if word == "twice":
        message = b'{"text": "forged"}'
        socket.socket(fileno=os.dup(int(sys.argv[1]))).sendall(len(message).to_bytes(8, "big") + message)
    if word == "badbox":
        return {"lines": [{"box": [[1e300, 0], [1, 1]], "text": "x"}]}
    if page.type == "document":
        return [f"page {number} of {page.pages}" for number in range(1, page.pages + 1)]
    return quill.write(page.type, os.path.basename(page.path)) + " \\ud800"
"""
#: Runs whenever the environment's Python starts.
PTH = "import os, sys; open(os.path.join(sys.prefix, 'seen'), 'a').write(repr(dict(os.environ)) + '\\n')\n"
CODE = 'def write(form, name):\n    return f"{form} {name}"\n'


def make_wheel(folder: Path, version: str = "1.0") -> Path:
    """The package `quill` as a wheel."""
    info = f"quill-{version}.dist-info"
    files = {
        "quill.py": CODE,
        "quill.pth": PTH,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: quill\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in files.items())
    path = folder / f"quill-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def make_profile(folder: Path) -> dict[str, object]:
    """The keys of a profile for `quill`, with the wheel, the lock and the reader in a folder."""
    wheel = make_wheel(folder)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "quill.txt").write_text(f"# made by hand\nquill==1.0 \\\n    --hash=sha256:{digest}\n")
    (folder / "reader.py").write_text(READER)
    return {
        "kind": "environment",
        "environment": "quill",
        "packages": ["quill==1.0"],
        "lock": str(folder / "quill.txt"),
        "reader": str(folder / "reader.py"),
        "reads": ["image", "page"],
        "licence": "Made-up-1.0",
    }


def settings(keys: dict[str, object], **more: object) -> Settings:
    """The profile as Loupe has it."""
    from loupe.typed import convert

    return convert({**keys, **more}, Settings)

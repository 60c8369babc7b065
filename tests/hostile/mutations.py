"""Mutations of files by what they are: bytes, JSON, lines of JSON, TOML, and what stands where a file should be."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import tempfile
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

#: What a person, a terminal, a path, a page or a formatter could take for more than text.
TEXTS: Sequence[str] = (
    "",
    " ",
    "\0",
    "a\0b",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b]52;c;cm0gLXJm\x07",
    "\x9b2J\x85",
    "\u202egnp.exe\u202c",
    "\u2066\u2069\u200e\u200f\ufeff\u2028",
    "a\r\nb\tc\x08\x7f",
    "\ud800",
    "\udfff\ud800x",
    "../" * 9 + "etc/passwd",
    "../canary/secret.txt",
    "..",
    ".",
    "/",
    "/dev/zero",
    "/dev/stdin",
    "/proc/self/environ",
    "/proc/self/mem",
    "~/.bashrc",
    "C:\\x\\y",
    "file:///etc/passwd",
    "http://192.0.2.1/x",
    "//host/share",
    "x#page=0",
    "scans/c.pdf#page=999999",
    "a" * 300,
    "é" * 5000,
    "x" * 200_000,
    "<script>alert(1)</script>",
    "{{7*7}}{%x%}",
    "%s%n%(a)s{0}{x}",
    "[bold red]x[/bold red][/]",
    "[link=file:///etc/passwd]x[/link]",
    "=cmd|' /C calc'!A0",
    "-rf",
    "--help",
    "$(touch x)`id`;&|",
    "\N{FAMILY}\u0301" * 40,
    "٣٣٣",
    "9" * 5000,
    "1e400",
    "NaN",
    "9999-12-31T23:59:59+23:59",
    "0001-01-01T00:00:00-23:59",
    "2026-13-45T99:99:99Z",
    "2026-11-22",
    "python:reader.py:right",
    "./evil.py",
    "json.py",
    "docs/evil.py",
    "loupe.types",
)
#: Spellings that JSON writers never make.
RAW: Sequence[str] = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "-0.0",
    "9" * 5000,
    "1e-400",
    "0x10",
    "01",
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u0000"',
    '{"a":1,"a":2}',
    "[" * 100_000 + "]" * 100_000,
    '{"a":' * 50_000 + "1" + "}" * 50_000,
    "[" * 200_000,
    '"',
    "",
    "'x'",
    "// x",
    "tru",
)
VALUES: Sequence[Any] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    10**6,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    10**400,
    0.5,
    -0.5,
    1e308,
    -1e308,
    5e-324,
    [],
    {},
    [[]],
    [None],
    [{}],
    {"": ""},
    {"a": None},
    ["a", 1],
    [1, 2, 3],
    [0.0, 0.0],
    [-1.0, 1.0],
)
#: Modules that Python, what Loupe uses, or Loupe itself imports early.
MODULES = (
    *("json", "multiprocessing", "typing", "re", "os", "sys", "io", "random", "signal", "pickle", "socket", "struct"),
    *("sitecustomize", "usercustomize", "loupe", "numpy", "PIL", "click", "msgspec", "rich", "pypdfium2"),
    *("asyncio", "logging", "encodings", "site", "readline", "tests", "lxml", "starlette", "uvicorn", "jinja2"),
)
_EVIL = "print('a module of a foreign folder was imported')\n"
_BYTES: Sequence[bytes] = (
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\n\n\n", b"\x1b[31m", b"{", b"}", b'"', b"\\", b"\x80"),
    *(b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\0" * 4096, b"A" * 70_000, b"%PDF-1.4\n", b"PK\x03\x04", b"\x89PNG\r\n"),
)


class Calm(random.Random):
    """Dice for which nothing is changed: what commands do with files that are in order."""


def text(dice: random.Random) -> str:
    """A hostile text."""
    return dice.choice(TEXTS)


def value(dice: random.Random) -> Any:
    """A hostile JSON value; what no writer makes comes as a marker that `dump` replaces."""
    kind = dice.random()
    if kind < 0.25:
        return f"@raw:{dice.randrange(len(RAW))}@"
    return text(dice) if kind < 0.6 else dice.choice(VALUES)


def dump(found: Any) -> str:
    """The value as JSON, with raw spellings in the place of their markers."""
    written = json.dumps(found, ensure_ascii=False)
    for number, raw in enumerate(RAW):
        written = written.replace(f'"@raw:{number}@"', raw)
    return written


def bend(dice: random.Random, found: Any) -> Any:
    """A JSON value with one hostile change somewhere in it."""
    if dice.random() < 0.15 or not isinstance(found, dict | list) or not found:
        return value(dice)
    if isinstance(found, list):
        bent: list[Any] = list(found)
        place = dice.randrange(len(bent))
        change = dice.random()
        if change < 0.15:
            bent.insert(place, bent[place])
        elif change < 0.25:
            del bent[place]
        else:
            bent[place] = bend(dice, bent[place])
        return bent
    made = dict(found)
    key = dice.choice(list(made))
    change = dice.random()
    if change < 0.1:
        del made[key]
    elif change < 0.2:
        made[text(dice)] = value(dice)
    elif change < 0.3:
        made[text(dice)] = made.pop(key)
    else:
        made[key] = bend(dice, made[key])
    return made


def bend_bytes(dice: random.Random, data: bytes) -> bytes:
    """Some bytes changed, cut out, doubled, or put in."""
    if isinstance(dice, Calm):
        return data
    for _ in range(dice.choice([1, 1, 2, 5, 30])):
        place = dice.randrange(len(data) + 1)
        end = min(len(data), place + dice.choice([1, 2, 4, 50, 1000]))
        change = dice.randrange(6)
        if change == 0:
            data = data[:place]
        elif change == 1:
            data = data[:place] + data[end:]
        elif change == 2:
            data = data[:end] + data[place:end] * dice.choice([1, 3, 40]) + data[end:]
        elif change == 3:
            data = data[:place] + dice.choice(_BYTES) + data[place:]
        elif change == 4:
            data = data[:place] + bytes(dice.randrange(256) for _ in range(end - place)) + data[end:]
        elif place < len(data):
            data = data[:place] + bytes([data[place] ^ (1 << dice.randrange(8))]) + data[place + 1 :]
    return data


def bend_lines(dice: random.Random, data: bytes) -> bytes:
    """Lines of JSON with some of them changed, doubled, in another order, torn, or of another kind."""
    lines: list[str] = data.decode("utf-8", "surrogateescape").splitlines()
    for _ in range(dice.choice([1, 1, 2, 4])):
        place = dice.randrange(len(lines) + 1)
        change = dice.randrange(8)
        if change == 0:
            lines.insert(place, dump(value(dice)))
        elif change == 1:
            lines += lines[:place]
        elif change == 2:
            dice.shuffle(lines)
        elif place < len(lines):
            try:
                lines[place] = dump(bend(dice, json.loads(lines[place])))
            except (ValueError, RecursionError):
                lines[place] = lines[place][: dice.randrange(len(lines[place]) + 1)]
    end = dice.choice(["\n", "\n", "\n", "", "\r\n", "\n\n", "\0\n"])
    written = end.join(lines) + dice.choice([end, end, "", '{"sample": "torn'])
    return written.encode("utf-8", "surrogatepass" if "\ud800" in written or "\udfff" in written else "surrogateescape")


def bend_json(dice: random.Random, data: bytes) -> bytes:
    """A JSON document with some changes."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return bend_bytes(dice, data)
    for _ in range(dice.choice([1, 1, 2, 5])):
        found = bend(dice, found)
    return dump(found).encode("utf-8", "surrogatepass")


_TOML_VALUES: Sequence[str] = (
    *('""', "''", "0", "-1", "1e400", "nan", "inf", "-inf", "true", "[]", "{}", "9" * 5000, "0xffffffffffffffffffff"),
    *("1979-05-27T07:32:00Z", "07:32:00", "1979-05-27", "[1, 'a', {}]", "'''\n'''", '"""\\\n"""', "[" * 20_000),
    *('"\\u001b[31m"', '"\\u202e"', '"\\u0000"', '"../canary"', '"' + "x" * 100_000 + '"', "{a = {b = {c = 1}}}"),
)
TOML_LINES: Sequence[str] = (
    '[engines.pdf_text]\nkind = "command"\ncommand = ["sh", "-c", "echo ran > ran.txt"]\n',
    '[engines.rapidocr]\nkind = "command"\ncommand = ["touch", "ran.txt"]\n',
    '[engines.x]\nkind = "python"\nfunction = "evil.py:read"\n',
    '[engines.x]\nkind = "openai"\nbase_url = "http://192.0.2.1/v1"\n',
    '[engines."../../x"]\nkind = "predictions"\n',
    '["\\u001b[31m"]\nx = 1\n',
    "[benchmark]\n",
    "[[benchmark]]\n",
    "[fields]\n",
    '[fields]\n"\\u001b]0;x\\u0007" = "text"\n',
    "engines = 3\n",
    "fields = []\n",
    "a" + ".a" * 5000 + " = 1\n",
    "[" + "a." * 3000 + "a]\n",
)


def bend_toml(dice: random.Random, data: bytes) -> bytes:
    """TOML with other values, keys and tables."""
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    for _ in range(dice.choice([1, 1, 2, 4])):
        place = dice.randrange(len(lines) + 1)
        change = dice.randrange(4)
        if change == 0:
            lines.insert(place, dice.choice(TOML_LINES))
        elif change == 1 and place < len(lines):
            del lines[place]
        elif change == 2 and place < len(lines):
            key = lines[place].partition("=")[0].strip() or "title"
            lines[place] = f"{key} = {dice.choice(_TOML_VALUES)}\n"
        else:
            lines.append(f"{json.dumps(text(dice), ensure_ascii=True)} = {dice.choice(_TOML_VALUES)}\n")
    data = "".join(lines).encode("utf-8", "surrogatepass")
    return bend_bytes(dice, data) if dice.random() < 0.2 else data


def bend_text(dice: random.Random, data: bytes) -> bytes:
    """A text with hostile pieces in it, now and then in an encoding of Windows or cut within one."""
    if dice.random() < 0.2:
        encoding = dice.choice(["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
        coded = data.decode("utf-8", "replace").encode(encoding)
        return coded[: dice.randrange(len(coded) + 1)] if dice.random() < 0.3 else coded
    place = dice.randrange(len(data) + 1)
    return data[:place] + text(dice).encode("utf-8", "surrogatepass") + data[place:]


BENDERS: dict[str, Callable[[random.Random, bytes], bytes]] = {
    ".json": bend_json,
    ".jsonl": bend_lines,
    ".toml": bend_toml,
    ".txt": bend_text,
    ".md": bend_text,
}


#: A larger file is one that an earlier change has made; its four gigabytes of nothing are hostile enough.
_LARGEST = 64 << 20


def bend_file(dice: random.Random, path: Path) -> None:
    """Mutate a file as what its name says it is, now and then as mere bytes."""
    if isinstance(dice, Calm) or path.stat().st_size > _LARGEST:
        return
    data = path.read_bytes()
    bender = BENDERS.get(path.suffix, bend_bytes)
    path.write_bytes(bend_bytes(dice, data) if dice.random() < 0.15 else bender(dice, data))


def replace_node(dice: random.Random, path: Path, canary: Path) -> None:
    """Put something else where a file or folder stands: a link, a pipe, a socket, a device, a folder, nothing."""
    folder = path.is_dir() and not path.is_symlink()
    kind = dice.randrange(14)
    if folder:
        shutil.rmtree(path)
    elif path.is_symlink() or path.exists():
        path.unlink()
    if kind <= 3:
        path.symlink_to(canary / dice.choice(["secret.txt", ".bashrc", "run.json", "predictions.jsonl", "page.png"]))
    elif kind == 4:
        path.symlink_to(dice.choice([canary / "folder", canary, Path(os.path.relpath(canary, path.parent))]))
    elif kind == 5:
        path.symlink_to(canary / "created.txt")
    elif kind == 6:
        path.symlink_to(dice.choice([path.name, "/dev/zero", "/dev/full", "/dev/tty", "/proc/self/fd/0", ".", ".."]))
    elif kind == 7:
        os.mkfifo(path)
    elif kind == 8:
        _socket(path)
    elif kind == 9:
        path.mkdir()
        (path / "x").write_text("x")
    elif kind == 10:
        path.touch()
    elif kind == 11:
        others = [each for each in path.parent.iterdir() if each.is_file() and not each.is_symlink()]
        if others:
            os.link(dice.choice(sorted(others)), path)
    elif kind == 12:
        path.write_bytes(b"\0" * dice.choice([1, 4096, 3_000_000]))
        os.truncate(path, dice.choice([0, 5, 1 << 32]))


def _socket(path: Path) -> None:
    """A listening address without anybody behind it; the name of a socket is short, so it is made and moved."""
    made = Path(tempfile.gettempdir()) / f".s{os.getpid()}"
    made.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(made))
    shutil.move(made, path)


def plant(dice: random.Random, folder: Path) -> None:
    """Modules with the names of those that are imported early."""
    for name in dice.sample(MODULES, dice.randint(1, 8)):
        if dice.random() < 0.7:
            (folder / f"{name}.py").write_text(_EVIL)
        else:
            (folder / name).mkdir(exist_ok=True)
            (folder / name / "__init__.py").write_text(_EVIL)
    if dice.random() < 0.2:
        (folder / "evil.pth").write_text("import os; print('a foreign line was run')\n")


def entries(root: Path) -> list[Path]:
    """Every file and folder below, in order; links are not followed."""
    found: list[Path] = []
    for folder, folders, files in os.walk(root):
        found += [Path(folder) / name for name in (*folders, *files)]
    return sorted(found)


def mutate(dice: random.Random, root: Path, canary: Path) -> None:
    """One to five changes of any kind to a tree."""
    if isinstance(dice, Calm):
        return
    for _ in range(dice.choice([1, 1, 1, 2, 3, 5])):
        every = entries(root)
        files = [path for path in every if path.is_file() and not path.is_symlink()]
        change = dice.random()
        if change < 0.62 and files:
            bend_file(dice, dice.choice(files))
        elif change < 0.9 and every:
            replace_node(dice, dice.choice(every), canary)
        elif change < 0.95:
            plant(dice, dice.choice([root, *(path for path in every if path.is_dir() and not path.is_symlink())]))
        elif every:
            _strange_name(dice, dice.choice(every))


def _strange_name(dice: random.Random, path: Path) -> None:
    """Another name for what stands there, or a copy under it; also as macOS writes it, and as a page of it."""
    alike = (
        unicodedata.normalize("NFD", f"é{path.name}"),
        unicodedata.normalize("NFC", f"é{path.name}"),
        f"{path.name}#page={dice.choice([0, 1, 2, 99])}",
        f"{path.stem}_p2{path.suffix}",
        path.name.upper(),
    )
    named = dice.choice(alike) if dice.random() < 0.4 else text(dice)
    name = named.replace("\0", "").replace("/", "_")[:100].encode("utf-8", "surrogatepass")[:250] or b"-"
    target = os.path.join(os.fsencode(path.parent), name)  # noqa: PTH118  a name that is no text
    if name in (b".", b"..") or os.path.lexists(target):
        return
    if dice.random() < 0.5 and path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST:
        shutil.copyfile(path, target)
    else:
        os.rename(path, target)  # noqa: PTH104  as above

"""A run as one archive, from which anybody can score it again, and back (docs/exports.md#packs).

A pack is a gzipped tar of the run's own records, and of its folder of documents where that is wanted; the same run
always gives the same bytes. What names a machine or a person is left out. A pack comes from a stranger: names, kinds,
sizes and numbers of its files are checked before anything is written, and nothing in it is run or imported.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from loupe.benchmarks.registry import is_own_folder, name_of_run
from loupe.data.hub.manifest import safe_path, shown_path
from loupe.engines.registry import slug
from loupe.engines.shared.redaction import is_secret_name, redacted
from loupe.errors import DatasetError, LoupeError, RunError, UnsafeFileError, UsageError, word
from loupe.files.folder import Folder
from loupe.files.foreign import open_data, real_path
from loupe.files.whole_folder import whole_folder
from loupe.pipeline.spent import OF_NODE
from loupe.runs.folder import PREDICTIONS, RESULT, RUN, SCORES, RunFolder
from loupe.runs.info import RunInfo
from loupe.runs.installed import named_apart
from loupe.typed import encode_json, json_decoder
from loupe.types import UNDECODABLE, Prediction, Result, SampleScores

#: What a pack holds, in this order; then the files of the folder of documents, below `TRUTH`.
RECORDS, TRUTH = (RUN, PREDICTIONS, SCORES, RESULT), "documents"
MOST_FILES = 100_000
#: A pack may grow to this many times its size, and small ones to so many bytes: answers shrink to a tenth at most.
_GROWTH, _ALWAYS, _LARGEST = 100, 64 << 20, 16 << 30
_LARGEST_INFO = 16 << 20
#: What reading a broken archive raises; tarfile goes one call deeper for each header that follows a header.
_DAMAGE = (tarfile.TarError, EOFError, zlib.error, OverflowError, RecursionError)
#: Places of this machine in run.json, which change no number.
_PLACES = (
    "base_url",
    "base_url_from",
    "program",
    "server_origin",
    "server_command",
    "servers_differ",
    "endpoint",
    "host",
)
_QUOTED_PATH = re.compile(r"""(['"])(?:[A-Za-z]:[\\/]|/)[^'"\n]*?([^\\/'"\n]*)\1""")
_PATH = re.compile(
    r"(?:(?<!\w)file://|(?<=(?<![\w-])-[A-Z])|(?<![\w./~-]))/(?:[^\s/'\"<>|:;,()]+/)+([^\s/'\"<>|:;,()]*)"
    r"|(?<!\w)[A-Za-z]:[\\/]+(?:[^\s\\/'\"<>|:;,()]+[\\/]+)*([^\s\\/'\"<>|:;,()]*)"
)
_KEY_NAME = r"(?:(?:api|access)[ _-]?key|token|secret|passw(?:or)?d|authorization)(?:\s+provided)?"
#: A key after its name and a sign; after a word like `--api-key`; after its name, if it has a digit; or by itself.
_SECRET = re.compile(
    rf"(?i){_KEY_NAME}[\\'\"]*\s*[=:]\s*[\\'\"]*(?:(?:bearer|basic)\s+)?[^\s'\"\\]+"
    rf"|(?<=-){_KEY_NAME}\s+['\"]?[^\s'\"-][^\s'\"]*"
    rf"|{_KEY_NAME}\s+['\"]?(?=[^\s'\"]*\d)[^\s'\"]{{8,}}"
    r"|\bbearer\s+[^\s'\"]+|\bbasic\s+(?=[a-z+/]*[0-9=])[\w+/=-]{8,}|\bsk-[\w-]{8,}|\bhf_\w{3,}"
)
#: An address, user:password@host, host:port, or a number of a machine.
_ADDRESS = re.compile(
    r"(?i)\b(?!file:)[a-z][a-z0-9+.-]{0,20}://[^\s'\"<>]+"
    r"|(?<![^\s'\"(=])[^\s/@'\":]{1,80}:[^\s/@'\"]{1,80}@[\w.-]+(?::\d+)?"
    r"|(?<![\w.-])(?!\S{0,80}\.(?:py|toml|jsonl?|yaml|txt|md):)(?:localhost|[\w-]+(?:\.[\w-]+)+):\d{2,5}(?!\w)"
    r"|(?<![\w.-])[a-z][\w-]{0,62}:\d{4,5}(?!\w)"
    r"|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\w)|(?<![\w:])\[?[0-9a-f:]{0,38}::[0-9a-f:]{1,38}(?!\w)(?:\]:\d+)?"
)


def pack_name(info: RunInfo) -> str:
    """The name of a run's pack if nobody gives one."""
    return f"{slug(info.engine)}_{slug(name_of_run(info))}.tar.gz"


def write_pack(folder: RunFolder, target: Path, *, with_truth: bool = False) -> int:
    """Write the pack; returns how many files are in it.

    Raises UsageError for the truth of a published benchmark, which is not ours to give away.
    """
    own = is_own_folder(folder.info.benchmark)
    if with_truth and not own:
        raise UsageError(
            f"{folder.path}: {folder.info.benchmark_id} is no folder of your own, so its truth is not packed",
            hint="who scores it gets the data with loupe data get",
        )
    hide = _hider(folder.info)
    count = 0
    with Folder(target.parent).draft(target.name) as draft:
        with (
            gzip.GzipFile(filename="", fileobj=draft.file, mode="wb", mtime=0) as packed,
            tarfile.TarFile(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name, data in _records(folder, hide, with_truth=with_truth):
                _add(tar, name, data)
                count += 1
            for name, data in _documents(folder.info) if with_truth else ():
                _add(tar, name, data)
                count += 1
        draft.replace()
    return count


def _documents(info: RunInfo) -> Iterator[tuple[str, bytes]]:
    """The files of the run's folder of documents, but for hidden ones. Raises UnsafeFileError for a link."""
    folder = Folder(Path(info.benchmark))
    folder.refuse_links()
    root = folder.path
    found = [path.relative_to(root) for path in sorted(root.rglob("*")) if path.is_file()]
    for path in found:
        if not any(part.startswith(".") for part in path.parts):
            with folder.open(path.as_posix()) as file:
                yield f"{TRUTH}/{path.as_posix()}", file.read()


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o644
    tar.addfile(member, io.BytesIO(data))


def _records(folder: RunFolder, hide: Callable[..., Any], *, with_truth: bool) -> Iterator[tuple[str, bytes]]:
    """The records without what names a machine or a person. Answers stay as they are, to the letter."""
    yield RUN, _json(_public(folder.info, hide, with_truth=with_truth))
    rows = (_public_prediction(folder.read_prediction(place), hide) for place in folder.prediction_places().values())
    yield PREDICTIONS, b"".join(encode_json(row) + b"\n" for row in rows)
    if folder.score_places():
        yield SCORES, b"".join(encode_json(_public_scores(row, hide)) + b"\n" for row in folder.scores())
    if (result := folder.stored_result()) is not None:
        document = msgspec.to_builtins(result)
        hidden = {name: hide(document[name]) for name in ("failures", "warnings", "not_computed")}
        hidden["speed"] = {name: value for name, value in document["speed"].items() if not name.startswith(OF_NODE)}
        yield RESULT, _json(document | hidden)


def _json(document: object) -> bytes:
    return msgspec.json.format(encode_json(document), indent=2) + b"\n"


def _public(info: RunInfo, hide: Callable[..., Any], *, with_truth: bool) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(info)
    # The digest of settings is part of the signature: it stays that of the settings as they were.
    for field in document["signature"].split("|"):
        if field.startswith("set:"):
            document["parts"].setdefault("set", field.removeprefix("set:"))
    for name in ("profile", "facts", "defining"):
        document[name] = hide(redacted({key: value for key, value in document[name].items() if key not in _PLACES}))
    for name in ("notes", "stopped", "options"):
        document[name] = hide(document[name])
    document["data"] = ""
    document["benchmark"] = TRUTH if with_truth else Path(info.benchmark).name
    return document


def _public_prediction(one: Prediction, hide: Callable[..., Any]) -> Prediction:
    response = hide(one.response, addresses=False)
    return msgspec.structs.replace(one, error=hide(one.error), endpoint=msgspec.UNSET, response=response)


def _public_scores(row: SampleScores, hide: Callable[..., Any]) -> SampleScores:
    """Without a digest: who has the pack scores anew, and takes no score from it."""
    details = hide(row.details, addresses=False)
    return msgspec.structs.replace(row, error=hide(row.error), details=details, digest="")


def _hider(info: RunInfo) -> Callable[..., Any]:
    """A function that takes paths of this machine out of JSON values, what looks like a key, and addresses.

    Without `addresses`, for what quotes pages, only those of the servers of this run.
    """
    places = (Path(place).parent for place in (info.benchmark, info.data) if place)
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  raises nothing for a user who has none
    known = [home, Path.cwd(), *places]
    prefixes = sorted({f"{path}/" for path in known if path.is_absolute() and path != Path("/")}, key=len, reverse=True)
    servers = sorted(_servers([info.profile, info.defining, info.facts]), key=len, reverse=True)

    def hidden(value: str, *, addresses: bool) -> str:
        for server in servers:
            value = value.replace(server, "…")
        for prefix in prefixes:
            value = value.replace(prefix, "")
        if addresses:
            value = _ADDRESS.sub("…", value)
        value = _QUOTED_PATH.sub(r"\1\2\1", value)
        return _SECRET.sub("…", _PATH.sub(lambda found: found[1] or found[2] or "", value))

    def hide(value: Any, *, addresses: bool = True) -> Any:
        if isinstance(value, str):
            return hidden(value, addresses=addresses)
        if isinstance(value, dict):
            return {
                key: "…" if isinstance(each, str) and each and _holds_key(key) else hide(each, addresses=addresses)
                for key, each in value.items()
            }
        return [hide(each, addresses=addresses) for each in value] if isinstance(value, list | tuple) else value

    return hide


def _holds_key(name: str) -> bool:
    """True if the entry of this name holds a key; `key` and `token` alone are words of a page too."""
    return name.lower() not in ("key", "token") and is_secret_name(name)


def _servers(value: Any) -> Iterator[str]:
    """The addresses in the settings that hold one, and their hosts with port; a host alone where it has a dot."""
    for table in value:
        for name in _PLACES:
            for url in re.findall(r"[a-z]+://[^\s'\",]+", str(table.get(name, "")), re.I):
                host = re.sub(r"^[^/]*//(?:[^/@]*@)?", "", url).partition("/")[0]
                yield from (url, host)
                if "." in (bare := host.rpartition(":")[0]):
                    yield bare


def unpack(source: Path, root: Path, *, again: bool = False) -> RunFolder:
    """Unpack a run below `root`, as ENGINE/BENCHMARK. Nothing is written unless everything in the pack is sound.

    `again` takes the run of this very pack that is there already. Raises RunError for a broken or unsafe pack, and if
    any other run is there.
    """
    try:
        info = _checked(source)
        hint = "ask for a pack of a run with a shorter name: loupe run BENCHMARK --name NAME"
        place = Folder(root) / f"{slug(info.engine, hint=hint)}/{slug(name_of_run(info), hint=hint)}"
        if again and _is_unpacked(source, info, place):
            return RunFolder.open(place)
        if place.names():
            raise RunError(
                f"{place.path} is there already",
                hint=f"score it: loupe score {word(place.path)}; or elsewhere: loupe unpack {word(source)} DIR",
            )
        with whole_folder(place, private=True) as aside:
            _write(source, info, aside, place)
        return RunFolder.open(place)
    except FileNotFoundError:
        raise RunError(f"no pack at {source}", hint="make one: loupe pack RUN") from None
    except (*_DAMAGE, OSError, MemoryError, ValueError) as error:
        # What could not be written, or is called in a way that no file is, is no fault of the pack.
        if isinstance(error, LoupeError) or (isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG):
            raise
        raise RunError(f"{source}: not a pack, or a broken one ({error})", hint="copy it again") from None


def _write(source: Path, info: RunInfo, aside: Folder, place: Folder) -> None:
    """Write the files of a pack into a folder that gets the name of `place`."""
    for name, stream in _members(source):
        if name in (RUN, SCORES):
            continue
        with aside.draft(name, sync=False) as draft:
            for part in iter(partial(stream.read, 1 << 20), b""):
                draft.file.write(part)
            draft.replace()
    aside.write(SCORES, b"".join(_lines_of(source, SCORES)))
    aside.write(RUN, _json(_at(place, info) if TRUTH in aside.names() else info))


def _at(place: Folder, info: RunInfo) -> RunInfo:
    """The run of a pack with the documents that it brings to `place`."""
    # Without them it is a run on a folder of that name, packed without truth.
    return msgspec.structs.replace(info, benchmark=str(real_path(place.path / TRUTH)))


def _is_unpacked(source: Path, info: RunInfo, place: Folder) -> bool:
    """Return whether a pack was unpacked here before: the same answers, documents and settings, to the byte.

    The signature may differ: scoring writes that of this version of Loupe.
    """
    try:
        for name, stream in _members(source):
            if name == RUN or name in (SCORES, RESULT):
                continue  # Made again here.
            with place.open(name) as file:
                for part in iter(partial(stream.read, 1 << 20), b""):
                    if file.read(len(part)) != part:
                        return False
                if file.read(1):
                    return False
        here = msgspec.structs.replace(RunFolder.open(place).info, signature=info.signature)
        return here == (_at(place, info) if TRUTH in place.names() else info)
    except (OSError, UnsafeFileError):
        return False


def is_pack(path: Path) -> bool:
    """True for a gzipped file, which no other thing that is scored is."""
    if not path.is_file():
        return False
    with open_data(path) as file:
        return file.read(2) == b"\x1f\x8b"


def _checked(source: Path) -> RunInfo:
    """The `run.json` of a pack of which every member is allowed, and decompressed once to its end."""
    found: RunInfo | None = None
    seen: set[str] = set()
    folders: set[str] = set()
    for name, stream in _members(source):
        above = {*_above(name)}
        if name in seen or name in folders or above & seen:
            raise RunError(f"{source}: {shown_path(name)} is there twice, or lies below a file")
        seen.add(name)
        folders |= above
        if name == RUN:
            found = named_apart(_decoded(stream.read(_LARGEST_INFO), RunInfo, f"{source}: {RUN}"))
        elif name == RESULT:
            _decoded(stream.read(), Result, f"{source}: {RESULT}")
        elif name in (PREDICTIONS, SCORES):
            kind = Prediction if name == PREDICTIONS else SampleScores
            for number, line in enumerate(stream, 1):
                _decoded(line, kind, f"{source}: {name}:{number}")
        else:
            while stream.read(1 << 20):
                pass
    if found is None or PREDICTIONS not in seen:
        raise RunError(f"{source}: not a pack of a run: {RUN} or {PREDICTIONS} is missing", hint="run: loupe pack RUN")
    if found.data or "/" in found.benchmark or "\\" in found.benchmark or found.benchmark in ("", ".", ".."):
        raise RunError(f"{source}: its {RUN} names a place outside of the pack", hint="make it with loupe pack")
    if found.benchmark != TRUTH and any(name.startswith(f"{TRUTH}/") for name in seen):
        raise RunError(f"{source}: brings {TRUTH}/, which its {RUN} does not name", hint="make it with loupe pack")
    return found


def _above(name: str) -> Iterator[str]:
    parts = name.split("/")[:-1]
    return ("/".join(parts[: end + 1]) for end in range(len(parts)))


def _members(source: Path) -> Iterator[tuple[str, Any]]:
    """Name and stream of every file in a pack. Raises RunError for anything that no pack of ours has."""
    with open_data(source) as file, gzip.GzipFile(fileobj=file, mode="rb") as packed:
        size = os.fstat(file.fileno()).st_size
        bounded: Any = _Bounded(packed, min(_LARGEST, max(_ALWAYS, _GROWTH * size)), source)
        with tarfile.open(fileobj=bounded, mode="r|") as tar:
            for count, member in enumerate(tar, 1):
                if count > MOST_FILES:
                    raise RunError(f"{source}: more than {MOST_FILES:,} files")
                stream = tar.extractfile(member) if member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) else None
                if stream is None or member.sparse is not None:
                    raise RunError(f"{source}: {shown_path(member.name)} is no plain file")
                if member.name not in RECORDS:
                    _check_document(member.name, source)
                yield member.name, stream


def _check_document(name: str, source: Path) -> None:
    try:
        safe_path(name, str(source))
    except DatasetError as error:
        raise RunError(error.message) from None
    parts = name.split("/")
    if len(parts) < 2 or parts[0] != TRUTH or any(part.startswith(".") for part in parts):
        raise RunError(f"{source}: {shown_path(name)} is no part of a run")


class _Bounded:
    """A stream that ends with an error where more comes out of it than a run could have."""

    def __init__(self, stream: gzip.GzipFile, most: int, source: Path) -> None:
        self._stream, self._left, self._source = stream, most, source

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise RunError(
                f"{self._source}: unpacked it is far larger than any run", hint="unpack it with care: tar -tzf"
            )
        return data


def _lines_of(source: Path, wanted: str) -> Iterator[bytes]:
    """The scores of a pack without their digests, which would let them pass for scores that were made here."""
    for name, stream in _members(source):
        if name == wanted:
            for number, line in enumerate(stream, 1):
                row = _decoded(line, SampleScores, f"{source}: {wanted}:{number}")
                yield encode_json(msgspec.structs.replace(row, digest="")) + b"\n"


def _decoded(data: bytes, kind: type[Any], place: str) -> Any:
    try:
        return json_decoder(kind).decode(data)
    except UNDECODABLE as error:
        raise RunError(f"{place}: {error}", hint="copy it again, or ask for another one") from None

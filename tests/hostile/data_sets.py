"""Data of the published benchmarks in the layouts that their loaders read, answers to them, and archives."""

from __future__ import annotations

import contextlib
import io
import json
import random
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.hostile import mutations
from tests.hostile.cases import Command, Target, World, choose, command
from tests.hostile.run_folders import write_answers, write_docs

PREPARED = (
    *(
        "ocrbench",
        "pubtabnet",
        "unimer_test",
        "nanonets_kie",
        "omnidocbench",
        "mdpbench",
        "ocrbench_v2",
        "docvqa",
        "chartqa",
        "textvqa",
        "cc_ocr",
        "omni_parse_bench",
        "dp_bench",
        "iam_lines",
        "fox",
    ),
)
OPTIONS = {"teds_test": ("-o", "first=0", "-o", "rows=2")}


def layouts_template(world: World) -> None:
    """Each data set as published (zips also unpacked), and some as `loupe data prepare` writes them."""
    from tests.data.test_data_layouts import IDS, published
    from tests.support.synthetic import write_prepared

    for ident in IDS:
        for name, data in published(ident).items():
            file = world.case / "published" / ident / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            if name.endswith(".zip"):
                zipfile.ZipFile(io.BytesIO(data)).extractall(file.parent)
    for ident in (*PREPARED, "olmocr_bench"):
        answers = write_prepared(ident, world.case / "prepared" / ident, 2)
        folder = world.case / "answers" / ident
        folder.mkdir(parents=True)
        for name, text in answers.items():
            (folder / f"{name}.md").write_text(text)


def make_layouts(dice: random.Random, world: World) -> Sequence[Command]:
    """One data set, mutated, then read, prepared, packed and verified."""
    place = dice.choice(sorted((world.case / dice.choice(["published", "prepared"])).iterdir()))
    ident, data = place.name, str(place.relative_to(world.case))
    mutations.mutate(dice, place, world.canary)
    if dice.random() < 0.25 and not isinstance(dice, mutations.Calm):
        _other_parquet(dice, place)
    more = OPTIONS.get(ident, ()) if "published" in data else ()
    with_data = ("--data", data, *more)
    given = "answers/ocrbench"
    cheap = (
        command("infer", ident, *with_data, "-e", f"predictions:{given}", "--limit", "2"),
        command("infer", ident, *with_data, "-e", f"predictions:{given}"),
        command("data", "prepare", ident, "--to", "new", *with_data, "--limit", "2"),
        command("data", "verify", data),
        command("data", "pack", data, "-o", "new.tar"),
        command("lint", given, "--for", "omnidocbench", "--data", data),
    )
    dear = (
        command("run", ident, *with_data, "-e", world.reader, "-j", "1", "--limit", "2"),
        command("infer", ident, *with_data, "-e", world.reader.replace(":right", ":look"), "--limit", "2"),
        command("score", ident, given, *with_data, "--limit", "2", "-j", "1"),
    )
    return choose(dice, cheap, dear, count=2)


def _other_parquet(dice: random.Random, place: Path) -> None:
    """A parquet file with columns of other types, without rows, or with very many of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(place.rglob("*.parquet"))
    if not files or not files[0].is_file() or files[0].is_symlink():
        return
    file = dice.choice(files)
    try:
        table = pq.read_table(file)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return
    if not table.column_names:
        return
    column = dice.choice(table.column_names)
    index = table.column_names.index(column)
    rows = table.num_rows
    others: Sequence[Callable[[], list[object]]] = (
        lambda: [None] * rows,
        lambda: [dice.randrange(99)] * rows,
        lambda: [mutations.text(dice).encode("utf-8", "replace").decode()] * rows,
        lambda: [mutations.text(dice).encode("utf-8", "surrogatepass")] * rows,
        lambda: [[{"bytes": b"x", "path": "../../canary/page.png"}]] * rows,
        lambda: [{"bytes": None, "path": "../../../canary/page.png"}] * rows,
        lambda: [float("nan")] * rows,
    )
    made = table.set_column(index, column, pa.array(dice.choice(others)()))
    change = dice.random()
    if change < 0.2:
        made = made.slice(0, 0)
    elif change < 0.3:
        count = dice.choice([300_000, 3_000_000])
        made = pa.table({name: pa.nulls(count) for name in table.column_names})
    with contextlib.suppress(OSError):  # A change has put a folder there.
        pq.write_table(made, file)


_TSV = "level page_num block_num par_num line_num word_num left top width height conf text"
#: What other programs write, each of which Loupe knows by its content.
FOREIGN: Sequence[tuple[str, str]] = (
    (".json", '{"status": "succeeded", "analyzeResult": {"content": "p0", "pages": [{"lines": [{"content": "p0"}]}]}}'),
    (".json", '{"DocumentMetadata": {"Pages": 1}, "Blocks": [{"BlockType": "LINE", "Text": "p0", "Page": 1}]}'),
    (".json", '{"responses": [{"fullTextAnnotation": {"text": "p0", "pages": []}}]}'),
    (".json", '{"schema_name": "DoclingDocument", "version": "1.0", "texts": [{"text": "p0"}], "body": {}}'),
    (".json", '{"pages": [{"index": 0, "markdown": "p0"}], "model": "m", "usage_info": {}}'),
    (".html", '<html><body><div class="ocr_page"><span class="ocrx_word">p0</span></div></body></html>'),
    (".txt", '<?xml version="1.0"?><alto xmlns="http://www.loc.gov/standards/alto/ns-v4#"><Layout/></alto>'),
    (".md", '<PcGts xmlns="http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15"><Page/></PcGts>'),
    (".txt", _TSV.replace(" ", "\t") + "\n5\t1\t1\t1\t1\t1\t0\t0\t9\t9\t90\tp0\n"),
)


def _put_foreign(dice: random.Random, folder: Path) -> None:
    """An answer as another program writes it, whole or bent, in place of one of these."""
    suffix, text = dice.choice(FOREIGN)
    bend = mutations.bend_json if suffix == ".json" else mutations.bend_bytes
    bent = bend(dice, text.encode()) if dice.random() < 0.5 else text.encode()
    deep = b'{"analyzeResult": ' * 5_000
    with contextlib.suppress(OSError):  # A change has put a folder or a link there.
        (folder / f"p0{suffix}").write_bytes(deep if dice.random() < 0.05 else bent)


def answers_template(world: World) -> None:
    """Answers as folders, as JSON lines and as official JSON, and what they answer."""
    from tests.support.synthetic import write_prepared

    write_docs(world.case / "docs")
    write_answers(world.case / "given" / "docs")
    lines = [{"id": name, "text": name} for name in ("p0", "p1", "q/4")]
    (world.case / "given" / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    (world.case / "given" / "docs.json").write_text(json.dumps(lines))
    for ident in ("omnidocbench", "dp_bench", "olmocr_bench", "pubtabnet"):
        answers = write_prepared(ident, world.case / "data" / ident, 2)
        folder = world.case / "given" / ident
        folder.mkdir()
        for name, text in answers.items():
            (folder / f"{name}.md").write_text(text)
        (world.case / "given" / f"{ident}.json").write_text(json.dumps(answers))


def make_answers(dice: random.Random, world: World) -> Sequence[Command]:
    """Mutated answers, filed, scored and looked through for faults."""
    if dice.random() < 0.3 and not isinstance(dice, mutations.Calm):
        _put_foreign(dice, world.case / "given" / "docs")
    mutations.mutate(dice, world.case / "given", world.canary)
    ident = dice.choice(["docs", "docs", "omnidocbench", "dp_bench", "olmocr_bench", "pubtabnet"])
    form = dice.choice(["", ".json", ".jsonl"] if ident == "docs" else ["", ".json"])
    given, data = f"given/{ident}{form}", () if ident == "docs" else ("--data", f"data/{ident}")
    cheap = (
        command("lint", given),
        command("infer", ident, "-e", f"predictions:{given}", *data),
        command("infer", ident, "-e", f"predictions:{given}", *data, "--limit", "1", "--json"),
    )
    dear = (
        command("score", ident, given, *data, "-j", "1"),
        command("score", ident, given, "given/docs", *data, "-j", "1", "--limit", "2"),
        command("lint", given, "--for", "omnidocbench", "--data", "data/omnidocbench", "-j", "1"),
        command("run", ident, "-e", f"predictions:{given}", *data, "-j", "1", "--limit", "2"),
    )
    return choose(dice, cheap, dear, count=2, often=0.3)


NAMES: Sequence[str] = (
    *("../canary/new.txt", "/canary.txt", "a/../../x", "..", ".", "", "a//b", "a/", "C:\\x", "con", "a\\..\\b", "\0x"),
    *("x" * 300, "x/" * 300 + "y", "é" * 200, "\x1b[31m.txt", "\u202etxt", "-rf", "a.json/below", "loupe-data.json"),
    *("json.py", "sitecustomize.py", ".bashrc", "a.json", "images/1.png"),
)
FILES = {"a.json": b"{}", "images/1.png": b"x" * 7000, "deep/er/b.txt": b"text"}


def archives_template(world: World) -> None:
    """A small data set, and the same as a pack and as a zip."""
    from loupe.data.hub.archives import pack

    for name, data in FILES.items():
        file = world.case / "set" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    pack(world.case / "set", world.case / "set.tar", ident="set")
    from tests.data.test_data_layouts import published

    for ident in ("unimer_test", "fox"):
        for name, data in published(ident).items():
            (world.case / name).write_bytes(data)


def make_archives(dice: random.Random, world: World) -> Sequence[Command]:
    """A pack whose members are not what a manifest says, or a zip with the like, and a data set that was changed."""
    pack = world.case / "set.tar"
    change = 1.0 if isinstance(dice, mutations.Calm) else dice.random()
    if change < 0.3:
        pack.write_bytes(mutations.bend_bytes(dice, pack.read_bytes()))
    elif change < 0.85:
        pack.write_bytes(_strange_tar(dice, pack))
    if dice.random() < 0.6 and change < 1.0:
        file = dice.choice(["UniMER-Test.zip", "focus_benchmark_test.zip"])
        (world.case / file).write_bytes(_strange_zip(dice, world.case / file))
    if dice.random() < 0.4:
        mutations.mutate(dice, world.case, world.canary)
    every = (
        command("data", "unpack", "set.tar", "--to", "new"),
        command("data", "unpack", "set.tar"),
        command("data", "unpack", "set.tar", "--json"),
        command("data", "verify", "set"),
        command("data", "pack", "set", "-o", "again.tar"),
        command("infer", "unimer_test", "--data", "UniMER-Test.zip", "-e", "predictions:set", "--limit", "2"),
        command("data", "prepare", "unimer_test", "--data", ".", "--to", "new2", "--limit", "2"),
        command("data", "prepare", "fox", "--data", ".", "--to", "new3", "--limit", "2"),
        command("infer", "fox", "--data", "focus_benchmark_test.zip", "-e", "predictions:set", "--limit", "2"),
    )
    return dice.sample(every, 3)


def _strange_tar(dice: random.Random, pack: Path) -> bytes:
    """The pack with some members and lines of its manifest exchanged for hostile ones."""
    found: list[tuple[tarfile.TarInfo, bytes]] = []
    with tarfile.open(pack) as tar:
        for member in tar:
            file = tar.extractfile(member)
            found.append((member, file.read() if file else b""))
    if dice.random() < 0.7:
        data = mutations.bend_json(dice, found[0][1])
        found[0] = (_member(found[0][0].name, len(data)), data)
    kinds = (
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.FIFOTYPE,
        tarfile.CHRTYPE,
        tarfile.DIRTYPE,
        tarfile.GNUTYPE_SPARSE,
    )
    for _ in range(dice.randint(0, 3)):
        place = dice.randrange(len(found))
        member, data = found[place]
        made = _member(dice.choice([*NAMES, member.name]), len(data))
        if dice.random() < 0.5:
            made.type, made.linkname = (
                dice.choice(kinds),
                dice.choice(["../canary/secret.txt", "/etc/passwd", "a.json"]),
            )
            made.size, data = (0, b"") if dice.random() < 0.7 else (len(data), data)
        found.insert(dice.randint(0, len(found)), (made, data))
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=dice.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])) as tar:
        for member, data in found:
            try:
                tar.addfile(member, io.BytesIO(data))
            except (ValueError, OSError, UnicodeError):
                continue
    return stream.getvalue()


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    return member


def _strange_zip(dice: random.Random, path: Path) -> bytes:
    """The zip with hostile names, links, bombs, or members that come twice."""
    if dice.random() < 0.3:
        return mutations.bend_bytes(dice, path.read_bytes())
    stream = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            name, data = info.filename, old.read(info)
            change = dice.random()
            if change < 0.1:
                name = dice.choice(NAMES).replace("\0", "") or "x"
            elif change < 0.2:
                suffix = Path(name).suffix
                data = mutations.BENDERS.get(suffix, mutations.bend_bytes)(dice, data)
            elif change < 0.25:
                data = b"\0" * dice.choice([10**6, 10**8])
            made = zipfile.ZipInfo(name)
            made.external_attr = dice.choice([0o644, 0o644, 0o644, 0o120777]) << 16
            new.writestr(made, data, zipfile.ZIP_DEFLATED)
            if dice.random() < 0.05:
                new.writestr(name + "x" * 250, data)
    return stream.getvalue()


LAYOUTS = Target(name="layouts", make=make_layouts, template=layouts_template, share=30, memory=2 << 30)
ANSWERS = Target(name="answers", make=make_answers, template=answers_template, share=20)
ARCHIVES = Target(name="archives", make=make_archives, template=archives_template, share=16)

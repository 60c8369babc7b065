"""Where the formulas of UniMER-Test stand: the published folder or zip, copies in parquet, the prepared form."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from loupe.data.packed import open_zip, read_member
from loupe.data.parquet import find_shards, rows
from loupe.data.prepared import is_prepared, read
from loupe.errors import DatasetError
from loupe.files.foreign import decode_text, read_data
from loupe.types import PackedImage, PageSource, Sample

#: Simple printed, complex printed, screen capture, handwritten; in the order of the official script.
SUBSETS = ("spe", "cpe", "sce", "hwe")
_FOLDER = "UniMER-Test"
#: What the folder of the copy in parquet is called beside that of the published files.
PARQUET = "-parquet"
_LAYOUT = (
    f"{_FOLDER}/ (or {_FOLDER}.zip) with spe.txt, cpe.txt, sce.txt, hwe.txt and folders spe/, cpe/, sce/, hwe/ of "
    "0000000.png and so on; or data/test-*.parquet with image and text; or the prepared form (metadata.jsonl)"
)


def read_formulas(folder: Path, subset: str, source: str) -> Iterator[Sample]:
    """Return the formulas of a subset, or of all of them, subset by subset, in file order.

    `source="parquet"` reads the copy in parquet, whose rows are in another order, also beside the published files.
    """
    if is_prepared(folder):
        return _chosen(_prepared(folder), subset)
    tree = _find_tree(folder) if source == "published" else None
    if tree:
        return _of_tree(tree, [name for name in SUBSETS if subset in ("all", name)])
    beside = folder.with_name(f"{folder.name}{PARQUET}")
    shards = find_shards(folder, "test") or (find_shards(beside, "test") if source == "parquet" else [])
    if shards and subset != "all":
        raise DatasetError(f"{folder}: parquet copies of UniMER-Test do not name the subsets", hint=_LAYOUT)
    if shards:
        return _parquet(shards)
    if source == "parquet":
        hint = "loupe data get unimer_test --source parquet"
        raise DatasetError(f"{folder}: no parquet copy of UniMER-Test here", hint=hint)
    raise DatasetError(f"{folder}: no UniMER-Test here; expected {_LAYOUT}", hint="loupe data get unimer_test")


@dataclass(frozen=True, slots=True)
class _Tree:
    """The published layout, in a folder or in a zip: what it is called, its files, and how to get at them."""

    path: Path
    names: Callable[[str], set[str]]
    read: Callable[[str], bytes]
    image: Callable[[str], PageSource]


def _find_tree(root: Path) -> _Tree | None:
    """The first folder with labels, at most two below `root`, else a zip."""
    deeper = (path.parent for pattern in ("*/spe.txt", "*/*/spe.txt") for path in sorted(root.glob(pattern)))
    for folder in (root, root / _FOLDER, *deeper):
        if any((folder / f"{name}.txt").is_file() for name in SUBSETS):
            return _folder_tree(folder)
    archives = [root] if root.suffix == ".zip" else sorted(root.glob(f"*{_FOLDER}*.zip"))
    return _zip_tree(archives[0]) if archives else None


def _folder_tree(folder: Path) -> _Tree:
    def names(subset: str) -> set[str]:
        return {path.name for path in (folder / subset).iterdir()} if (folder / subset).is_dir() else set()

    return _Tree(
        path=folder,
        names=names,
        read=lambda name: read_data(folder / name),
        image=lambda name: folder / name,
    )


def _zip_tree(path: Path) -> _Tree:
    archive = open_zip(path)
    members = archive.namelist()
    top = next((name[: -len("spe.txt")] for name in members if name.rpartition("/")[2] == "spe.txt"), None)
    if top is None:
        raise DatasetError(f"{path}: holds no spe.txt", hint=f"expected {_LAYOUT}")
    by_subset = {
        subset: {name.rpartition("/")[2] for name in members if name.startswith(f"{top}{subset}/")} - {""}
        for subset in SUBSETS
    }
    return _Tree(
        path=path,
        names=lambda subset: by_subset[subset],
        read=lambda name: read_member(archive, f"{top}{name}"),
        image=lambda name: PackedImage(path, f"{top}{name}"),
    )


def _of_tree(tree: _Tree, subsets: Sequence[str]) -> Iterator[Sample]:
    """The formulas of these subsets. Where no image of any is here, those of all labels: scoring needs no images."""
    images = {subset: {name for name in tree.names(subset) if not name.startswith(".")} for subset in subsets}
    without = [subset for subset in subsets if not images[subset]]
    # Of a zip nobody would take the images out: there they are missing by mistake.
    if without and (len(without) < len(subsets) or not tree.path.is_dir()):
        here = next((subset for subset in subsets if images[subset]), "")
        alone = f"-o subset={here} reads one subset alone; " if here else ""
        raise DatasetError(
            f"{tree.path}: no images in {', '.join(f'{subset}/' for subset in without)}",
            hint=f"{alone}expected {_LAYOUT}",
        )
    for subset in subsets:
        yield from _labelled(tree, subset) if without else _subset(tree, subset, images[subset])


def _labelled(tree: _Tree, subset: str) -> Iterator[Sample]:
    for index, label in enumerate(_labels(tree, subset)):
        if label:
            yield _sample(tree, subset, index, label)


def _sample(tree: _Tree, subset: str, index: int, label: str) -> Sample:
    image = tree.image(f"{subset}/{index:07d}.png")
    return Sample(id=f"{subset}_{index:07d}", images=(image,), truth=label, tags={"subset": subset})


def _subset(tree: _Tree, subset: str, images: set[str]) -> Iterator[Sample]:
    """Pair labels with images by number, as the official script does: a label without an image is no sample."""
    for index, label in enumerate(_labels(tree, subset)):
        name = f"{index:07d}.png"
        if label and name in images:
            images.remove(name)
            yield _sample(tree, subset, index, label)
    if images:
        raise DatasetError(
            f"{tree.path}: {len(images)} files in {subset}/ have no label in {subset}.txt, such as {min(images)}",
            hint=f"line i (from 0) belongs to the image with the number i in 7 digits; expected {_LAYOUT}",
        )


def _is_there(tree: _Tree, subset: str) -> bool:
    try:
        return bool(tree.read(f"{subset}.txt"))
    except (OSError, KeyError):
        return False


def _labels(tree: _Tree, subset: str) -> list[str]:
    """Lines as Python reads files: only \\n, \\r and \\r\\n end one, not the other separators of Unicode."""
    try:
        text = decode_text(tree.read(f"{subset}.txt"))
    except (OSError, KeyError):
        others = [name for name in SUBSETS if name != subset and _is_there(tree, name)]
        alone = f"-o subset={others[0]} reads one subset alone; " if others else ""
        raise DatasetError(f"{tree.path}: {subset}.txt cannot be read", hint=f"{alone}expected {_LAYOUT}") from None
    except UnicodeDecodeError:
        raise DatasetError(f"{tree.path}: {subset}.txt is not UTF-8", hint="loupe data verify") from None
    return [line.strip() for line in io.StringIO(text, newline=None)]


def _parquet(shards: list[Path]) -> Iterator[Sample]:
    for index, row in enumerate(rows(shards, ("text",))):
        yield Sample(id=f"unimernet_{index}", images=(row.image(),), truth=str(row["text"]).strip())


def _prepared(root: Path) -> Iterator[Sample]:
    for row in read(root):
        facts = {**row.metadata, **(row.metadata.get("tags") or {})}
        named = str(facts.get("subset") or facts.get("category") or "").lower()
        tags = {"subset": named} if named in SUBSETS else {}
        yield Sample(id=row.sample_id, images=(row.image,), truth=str(row.ground_truth).strip(), tags=tags)


def _chosen(samples: Iterator[Sample], subset: str) -> Iterator[Sample]:
    return (sample for sample in samples if subset in ("all", sample.tags.get("subset")))

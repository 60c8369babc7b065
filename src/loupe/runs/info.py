"""`run.json`: everything that defines the numbers of a run, and the signature made from it."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from loupe import __version__
from loupe.runs.drawn import Drawn
from loupe.typed import encode_json

#: Packages whose version can change an answer or a score.
_PACKAGES = (
    *("numpy", "pillow", "pypdfium2", "rapidfuzz", "aiohttp", "msgspec"),
    *("lxml", "json_repair", "nltk", "jieba", "rapidocr", "onnxruntime"),
)


#: Of these, the ones that decide about the pixels an engine gets to see.
PIXEL_PACKAGES = ("pillow", "pypdfium2")
#: Facts of an engine that change no answer: where it stands, and who started its server (its arguments are settings).
PLACES = frozenset(
    {"base_url", "base_url_from", "program", "server_origin", "server_command", "servers_differ", "host"}
)


class RunInfo(msgspec.Struct, kw_only=True, frozen=True):
    """The content of `run.json`. `defining` holds what must agree before a run is continued.

    `limit` and `sample` say which samples are asked: the first ones, or some that were drawn; with neither, all.
    `total` is how many that makes, `whole` how many there are (0: unknown, in runs of earlier versions). `first` is a
    digest of the ids that `limit` asks for in a folder of one's own, where the order of lines is in no other digest.
    `data_seal` proves that the user of this machine named the place `data`.
    """

    benchmark: str
    benchmark_id: str
    version: str
    engine: str
    profile: dict[str, Any]
    defining: dict[str, Any] = {}
    data: str = ""
    data_seal: str = ""
    options: dict[str, str] = {}
    data_digest: str = ""
    prompt_digest: str = ""
    prompts: dict[str, str] = {}
    adapters: list[str] = []
    facts: dict[str, str] = {}
    packages: dict[str, str] = {}
    host: dict[str, str] = {}
    limit: int | None = None
    sample: Drawn | None = None
    total: int = 0
    whole: int = 0
    first: str = ""
    created: str = ""
    truth_digest: str = ""
    question_digest: str = ""
    parts: dict[str, str] = {}
    signature: str = ""
    stopped: str = ""
    notes: list[str] = []

    @property
    def reference_digest(self) -> str:
        """The digest of what defines the numbers: ids, questions and references of the whole data set, and no page
        image.

        `data_digest` has the images, too: a run is not continued on other pages.
        """
        return self.truth_digest or self.data_digest

    @property
    def addresses(self) -> list[str]:
        """The URLs that pages were sent to, without what may be a secret; none for engines that read here."""
        urls = self.facts.get("base_url") or self.profile.get("base_url") or []
        return urls.split(", ") if isinstance(urls, str) else [str(url) for url in urls]

    @property
    def part(self) -> str:
        """The part of the set that was asked for, as `first 2 of 19` or `4 of 19 at random`; "" for all of it."""
        if not _is_part(self) or self.total == self.whole:
            return ""
        count = f"{self.total:,} of {self.whole:,}" if self.whole else f"{self.total:,}"
        if self.sample is None:
            return f"first {count}"
        return f"{count} at random" + (f" (seed {self.sample.seed})" if self.sample.seed else "")


#: What the digests stand for: two of them side by side say nothing to a person.
_CHANGED = {"data": "pages or references changed since: ", "prompts": "the prompts differ: "}
_DIGEST = re.compile("[0-9a-f]{64}")


def differences(old: RunInfo, new: RunInfo) -> list[str]:
    """One line for each setting that differs between the run on disk and the one asked for."""
    before, after = _settings(old), _settings(new)
    if old.options != new.options:
        # An option may select or change references: then it is the reason, and the data may be the same.
        before["data"] = after["data"]
    if _is_part(old) and _is_part(new):
        # All samples hold any part of them, and a part may grow; other samples than before may not slip in.
        before["samples"], after["samples"] = _drawn_by(old), _drawn_by(new)
    # What the engine says of itself is known only once it is open; until then there is nothing to compare with.
    if old.facts and new.facts:
        before |= {key: value for key, value in old.facts.items() if key not in PLACES}
        after |= {key: value for key, value in new.facts.items() if key not in PLACES}
    return [
        f"{key}: {_CHANGED.get(key, '')}{_short(before.get(key))} in the folder, {_short(after.get(key))} now"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _is_part(info: RunInfo) -> bool:
    return info.limit is not None or info.sample is not None


def _drawn_by(info: RunInfo) -> str:
    if info.sample is None:
        return "the first ones"
    how = "at random" if not info.sample.ids else f"in proportion to {' and '.join(info.sample.strata)}"
    return f"drawn {how} with seed {info.sample.seed}"


def _settings(info: RunInfo) -> dict[str, Any]:
    flat: dict[str, Any] = {f"engine.{key}": value for key, value in info.defining.items()}
    flat |= {f"option.{key}": value for key, value in info.options.items()}
    flat |= {"benchmark": info.benchmark_id, "version": info.version}
    # Answers that exist were read from pages that nobody knows: whether these are here is no setting.
    data = info.reference_digest if info.profile.get("kind") == "predictions" else info.data_digest
    flat |= {"data": data, "prompts": info.prompt_digest}
    flat |= {f"package {name}": info.packages[name] for name in PIXEL_PACKAGES if name in info.packages}
    return flat


def _short(value: Any) -> str:
    text = "nothing" if value in (None, "") else str(value)
    if _DIGEST.fullmatch(text):
        return text[:12]
    return text if len(text) <= 60 else text[:57] + "..."


def signature(info: RunInfo) -> str:
    """The line under every table: `sample_pages:1|n:12|data:3f2a…|engine:rapidocr|…|loupe:0.1.0`."""
    data = digest_of([info.reference_digest, info.first]) if info.first else info.reference_digest
    fields = [f"{info.benchmark_id}:{info.version}", f"n:{info.total}", f"data:{data[:8]}"]
    fields += [f"sample:{info.sample.way}"] if info.sample else []
    fields += [f"opt:{key}={value}" for key, value in sorted(info.options.items())]
    fields += [f"engine:{info.engine}", f"prompt:{info.prompt_digest[:8] or 'none'}"]
    fields += [f"{key}:{value}" for key, value in {**_model(info), **info.parts, **_settings_digest(info)}.items()]
    # A vendor's package is known only once the engine is open.
    fields += [f"package:{info.facts['package']}"] if "package" in info.facts else []
    fields += [f"adapter:{'+'.join(info.adapters) or 'none'}", f"loupe:{__version__}"]
    return "|".join(field.replace("|", "_") for field in fields)


def _model(info: RunInfo) -> dict[str, str]:
    """The model that answered; the server may have been the one to say which."""
    model = info.facts.get("model") or info.defining.get("model")
    return {"model": str(model)} if model else {}


def _settings_digest(info: RunInfo) -> dict[str, str]:
    """A digest of settings and of one's own code where no version stands for them: none at all, or `vlm/1+top_p`.

    Answers that exist were made with settings that nobody here knows.
    """
    version = info.parts.get("profile", "")
    if (version and "+" not in version) or info.profile.get("kind") == "predictions" or not info.defining:
        return {}
    code = info.facts.get("source", "")
    return {} if "set" in info.parts else {"set": digest_of([info.defining, code])[:8]}


def digest_of(parts: Iterable[Any]) -> str:
    """A sha256 over JSON values, order included."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(encode_json(part, order="sorted"))
        digest.update(b"\n")
    return digest.hexdigest()


def package_versions() -> dict[str, str]:
    """Versions of Loupe, Python and the packages that touch pages or numbers."""
    found = {"loupe": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def host_facts() -> dict[str, str]:
    """The kind of machine, without its name or its user."""
    import os

    return {"system": platform.system(), "machine": platform.machine(), "cores": str(os.cpu_count() or 1)}

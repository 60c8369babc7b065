"""A run as a log of Inspect, which `inspect view` shows and `inspect_ai.log.read_eval_log` reads.

Source: the log format of inspect_ai 0.3 (https://inspect.aisi.org.uk/eval-logs.html): a zip of `header.json`, one JSON
file for each sample, and their summaries. Inspect is not needed to write it. The same run gives the same bytes.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from loupe.engines.registry import slug
from loupe.errors import UsageError
from loupe.files.file_names import safe_name
from loupe.files.folder import Folder
from loupe.results.control_characters import printable
from loupe.results.exports.sample_tables import Written, sample_rows, scored
from loupe.results.headline import headline_of
from loupe.results.scored_here import marks, result_of
from loupe.results.tables.spreadsheet_cells import Cell
from loupe.runs.folder import RunFolder
from loupe.typed import encode_json
from loupe.types import Result

#: What Inspect calls the end of an answer.
_STOPPED = {"truncated": "max_tokens", "unfinished": "max_tokens", "refused": "content_filter", "rejected": "unknown"}
#: Characters of a text in the list of samples.
_SHORT = 1000


def write_inspect_logs(folders: Sequence[RunFolder], target: Path, *, raw: bool = False) -> list[Written]:
    """Write a log of each run. Raises UsageError, before anything is written, where two would be one file."""
    names: dict[str, Path] = {}
    for folder in folders:
        twin = names.setdefault(_name(folder), folder.path)
        if twin != folder.path:
            raise UsageError(
                f"{twin} and {folder.path} would be the same file, {_name(folder)}",
                hint="export them one by one, each with an --output of its own",
            )
    return [write_inspect_log(folder, target, raw=raw) for folder in folders]


def write_inspect_log(folder: RunFolder, target: Path, *, raw: bool = False) -> Written:
    """Write a run below `target` under the name that Inspect gives logs. Raises RunError for one without scores."""
    result = result_of(scored(folder))
    assert result is not None
    name = _name(folder)
    summaries = []
    with Folder(target).draft(name) as draft:
        with zipfile.ZipFile(draft.file, "w", zipfile.ZIP_DEFLATED) as log:
            for sample in _samples(folder, raw=raw):
                _add(log, f"samples/{sample['id']}_epoch_1.json", sample)
                summaries.append(_summary(sample))
            _add(log, "summaries.json", summaries)
            _add(log, "header.json", _header(folder, result, [summary["id"] for summary in summaries]))
        draft.replace()
    return Written(file=str(target / name), samples=len(summaries))


def _name(folder: RunFolder) -> str:
    info = folder.info
    stamp = "".join(char if char.isalnum() else "-" for char in info.created[:19]) or "undated"
    return f"{stamp}_{slug(info.benchmark_id)}_{slug(info.engine)}.eval"


def _add(log: zipfile.ZipFile, name: str, document: object) -> None:
    """A file without the time at which it was written."""
    member = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    log.writestr(member, encode_json(document))


def _header(folder: RunFolder, result: Result, ids: list[str]) -> dict[str, Any]:
    info = folder.info
    ranked = headline_of([result])
    identity = hashlib.sha256(f"{info.signature} {info.created}".encode()).hexdigest()[:22]
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": identity,
            "run_id": identity,
            "created": _time(info.created),
            "task": info.benchmark_id,
            "task_id": identity,
            "task_version": info.version,
            "dataset": {"name": info.benchmark_id, "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": info.engine,
            "config": {"epochs": 1},
            "packages": {"loupe-ocr": info.packages.get("loupe", "")},
            "metadata": {"signature": result.signature, "headline": ranked.measure, "headline_note": ranked.note}
            | ({"scored": marks(result)} if marks(result) else {}),
        },
        "plan": {"name": "loupe", "steps": [], "config": {}},
        "results": {
            "total_samples": result.total,
            "completed_samples": len(ids),
            "scores": list(_results(result)),
        },
        "stats": {"started_at": _time(info.created), "completed_at": _time(info.created), "model_usage": {}},
    }


def _results(result: Result) -> Iterator[dict[str, Any]]:
    for measure, found in result.measures.items():
        values = {"value": found.value, "low": found.low, "high": found.high, "n": found.n}
        metrics = {name: {"name": name, "value": value} for name, value in values.items() if value is not None}
        if found.value is not None:
            yield {"name": measure, "scorer": measure, "params": {}, "metrics": metrics}


def _samples(folder: RunFolder, *, raw: bool) -> Iterator[dict[str, Any]]:
    for row in sample_rows(folder, raw=raw):
        answer = str(row["text"] or "")
        scores = {
            name.partition(".")[2]: {"value": value, "answer": answer}
            for name, value in row.items()
            if name.startswith("measure.")
        }
        message = {"role": "assistant", "content": answer, "source": "generate"}
        choice = {"message": message, "stop_reason": _STOPPED.get(str(row["class"]), "stop")}
        further = {
            name: value for name, value in row.items() if name.startswith(("tag.", "diagnostic.")) or name == "class"
        }
        yield {
            "id": safe_name(str(row["sample"])),
            "epoch": 1,
            "input": str(row["sample"]),
            "target": str(row["reference"] or ""),
            "messages": [{"role": "user", "content": str(row["sample"])}, message],
            "output": {"model": row["engine"], "choices": [choice], "completion": answer, **_usage(row)},
            "scores": scores,
            "metadata": {"sample": row["sample"], **further},
            "store": {},
            "events": [],
            "model_usage": {},
            "attachments": {},
            "total_time": row["seconds"] or 0.0,
            **({"error": _error(str(row["error"]))} if row["error"] else {}),
        }


def _usage(row: dict[str, Cell]) -> dict[str, Any]:
    counts = {name: int(row[name] or 0) for name in ("input_tokens", "output_tokens")}
    return {"time": row["seconds"] or 0.0, "usage": {**counts, "total_tokens": sum(counts.values())}}


def _error(message: str) -> dict[str, str]:
    """The viewer shows colours of a traceback: an engine's message may hold none."""
    shown = printable(message)
    return {"message": shown, "traceback": shown, "traceback_ansi": shown}


def _summary(sample: dict[str, Any]) -> dict[str, Any]:
    kept = ("id", "epoch", "input", "metadata", "model_usage", "total_time")
    scores = {name: {"value": score["value"]} for name, score in sample["scores"].items()}
    error = {"error": sample["error"]["message"][:_SHORT]} if "error" in sample else {}
    shown = {name: sample[name] for name in kept} | {"target": sample["target"][:_SHORT]}
    return {**shown, "scores": scores, "completed": True, "message_count": 2, **error}


def _time(created: str) -> str:
    """A time with its zone, which Inspect asks for."""
    try:
        return datetime.fromisoformat(created).isoformat()
    except ValueError:
        return "1970-01-01T00:00:00+00:00"

"""Questions about documents, OCRBench v2 and CC-OCR: grading by Loupe and by the official programs, in one run.

    python perf/questions.py [--scale 1.0] [--only docvqa,cc_ocr] [--python PYTHON] [--vlmevalkit DIR]
                             [--ocrbench-v2 DIR] [--cc-ocr DIR]

DIR is a copy of open-compass/VLMEvalKit, of `OCRBench_v2/eval_scripts` in Yuliang-Liu/MultimodalOCR, of
`Benchmarks/CC-OCR/evaluation` in AlibabaResearch/AdvancedLiterateMachinery; PYTHON one of an environment of its own:
`python -m venv ENV`, then `ENV/bin/pip install nltk jieba apted Distance zss lxml numpy tqdm tabulate Levenshtein
editdistance Polygon3 pandas huggingface_hub sty setuptools`, with NLTK's WordNet. The sets are made up and as large as
the real ones; OCRBench v2 has its 30 types in their published numbers, with passages, tables and outlines.

Printed: seconds of processor time, of both, for grading alone (data are read and programs started before), their ratio,
and how many values differ by over 1e-6, which must be none. Without a DIR stands what Loupe takes. The official
OCRBench v2 reads and writes its JSON within the time; CC-OCR starts its processes within it, and these count.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.synthetic import misread, table_html, word, words, write_prepared

from loupe.benchmarks.registry import get_benchmark
from loupe.stats.measure_values import value_of
from loupe.types import Benchmark, Prediction, Sample, Score
from scoring import SIZES

#: Benchmark → the option with its official program, and the measure whose values are compared.
QUESTIONS = {
    "docvqa": ("vlmevalkit", "anls"),
    "infovqa": ("vlmevalkit", "anls"),
    "chartqa": ("vlmevalkit", "relaxed_accuracy"),
    "textvqa": ("vlmevalkit", "vqa_accuracy"),
    "ocrbench_v2": ("ocrbench_v2", "points"),
    "cc_ocr": ("cc_ocr", ""),
}
#: Run by the other Python with a folder, a file of rows, and the benchmark; `seconds` counts processes that ended.
_START = """
import json, os, resource, sys, types
folder, file, ident = sys.argv[1:]
rows = [json.loads(line) for line in open(file)]
seconds = lambda: sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
sys.modules["ipdb"] = types.ModuleType("ipdb")  # a debugger, at which nothing made up here stops
"""
_END = """
with open(file + ".found", "w") as out:
    json.dump([seconds() - began, values], out)
os._exit(0)
"""
#: The rest of VLMEvalKit needs PyTorch: only the two files that score are loaded.
_VLMEVALKIT = """
import importlib.util
def load(name, path):
    spec = importlib.util.spec_from_file_location(name, os.path.join(folder, path))
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
sys.modules["vlmeval"] = types.ModuleType("vlmeval")
load("vlmeval.smp", "vlmeval/smp/misc.py")
program = load("vqa_eval", "vlmeval/dataset/utils/vqa_eval.py")
name = {"docvqa": "DocVQA", "infovqa": "InfoVQA", "chartqa": "ChartQA", "textvqa": "TextVQA"}[ident]
method = {"ChartQA": "relaxed_accuracy", "TextVQA": "vqa_score"}.get(name, "anls")
lines = [{"answer": repr(row["truth"]["answers"]), "prediction": row["answer"]} for row in rows]
began = seconds()
values = [float(each) for each in program.hit_calculate([program.process_line(x, method=method) for x in lines], name)]
"""
_OCRBENCH_V2 = """
sys.path.insert(0, folder)
import eval as program
items = [{k: v for k, v in row["truth"].items() if v is not None} for row in rows]
items = [{**item, "type": row["tags"]["type"], "predict": row["answer"]} for item, row in zip(items, rows)]
json.dump(items, open("items.json", "w"))
began = seconds()
program.process_predictions("items.json", "scores.json")
values = [item["score"] for item in json.load(open("scores.json"))]
"""
_CC_OCR = """
sys.path.insert(0, folder)
from evaluator import evaluator_map_info
subsets = {}
for row in rows:
    place = row["tags"]["track"], row["tags"]["subset"], row["tags"].get("op", "")
    wanted, given = subsets.setdefault(place, ({}, {}))
    wanted[row["id"]], given[row["id"]] = row["truth"], row["answer"]
began, values = seconds(), {}
for (track, subset, op), (wanted, given) in subsets.items():
    _, found = evaluator_map_info[track](given, wanted, dataset=subset, group=track, op=op)
    values.update({track + " " + subset + " " + name: value for name, value in found["summary"].items()})
"""
_PROGRAMS = {"vlmevalkit": _VLMEVALKIT, "ocrbench_v2": _OCRBENCH_V2, "cc_ocr": _CC_OCR}
#: Our measure of a subset of CC-OCR → its official name.
_OF_SUBSET = {
    "macro_f1": "macro_f1_score",
    "micro_f1": "mirco_f1_score",
    "similarity": "score",
    "field_f1": "f1_score",
    "tree_accuracy": "acc",
}
Made = tuple[Any, str]
_HAN = "天地人山水火木金土日月年中大小上下左右前后东西南北文字书本学生老师电话手机公司产品价格数量"


def han(dice: random.Random, count: int) -> str:
    """Chinese characters in no order, with a comma now and then."""
    return "".join("，" if index % 11 == 10 else dice.choice(_HAN) for index in range(count))


def _plain(length: int, make: Callable[[random.Random, int], str] = words, **facts: Any) -> Callable[..., Made]:
    def made(dice: random.Random) -> Made:
        text = make(dice, dice.randint(max(1, length // 2), length))
        return {"answers": [text], **facts}, misread(text, dice, rate=0.05)

    return made


def _outline(make: Callable[[random.Random, int], str], length: int) -> Callable[..., Made]:
    def made(dice: random.Random) -> Made:
        lines = [("# " if dice.random() < 0.2 else "") + make(dice, length) for _ in range(dice.randint(8, 40))]
        said = [line for line in lines if dice.random() < 0.95]
        return {"answers": ["\n".join(lines)]}, misread("\n".join(said), dice)

    return made


def _table(dice: random.Random) -> Made:
    rows = table_html(dice, dice.randint(3, 10), dice.randint(2, 6))
    said = [misread(row, dice, rate=0.0) for row in rows if dice.random() < 0.97]
    tables = [f"<table>{''.join(each)}</table>" for each in (rows, said)]
    return {"answers": tables[:1], "question": "Give the table as HTML."}, tables[1]


def _chart(dice: random.Random) -> Made:
    rows = {word(dice): {word(dice): f"{dice.uniform(1, 99):.1f}" for _ in range(3)} for _ in range(dice.randint(2, 8))}
    return {"answers": [rows]}, misread(repr(rows), dice)


def _fields(dice: random.Random) -> Made:
    known = {f"{word(dice)} {number}": words(dice, 3) for number in range(dice.randint(1, 8))}
    said = json.dumps({key: misread(value, dice) for key, value in known.items()})
    return {"answers": [{key: [value] for key, value in known.items()}]}, said


def _chinese_fields(dice: random.Random) -> Made:
    known = {han(dice, 3) + str(number): han(dice, 6) for number in range(dice.randint(1, 8))}
    return {"answers": [repr(known)]}, json.dumps(known, ensure_ascii=False)


def _box(dice: random.Random) -> list[int]:
    left, top = dice.randint(0, 600), dice.randint(0, 600)
    return [left, top, left + dice.randint(20, 300), top + dice.randint(20, 300)]


def _grounded(dice: random.Random) -> Made:
    box = _box(dice)
    return {"answers": box}, f"({box[0]}, {box[1]}, {box[2] + 9}, {box[3]})"


def _placed(dice: random.Random) -> Made:
    box, text = _box(dice), words(dice, 2)
    return {"answers": [text], "bbox": box}, json.dumps({"answer": misread(text, dice, rate=0.1), "bbox": str(box)})


def _spotted(dice: random.Random) -> Made:
    found = [(_box(dice), word(dice)) for _ in range(dice.randint(1, 12))]
    hulls = [[x, y, right, y, right, low, x, low] for (x, y, right, low), _ in found]
    said = [f"({','.join(map(str, box))},{misread(text, dice, rate=0.1)})" for box, text in found]
    return {"answers": [], "bbox": hulls, "content": [text for _, text in found]}, f"[{','.join(said)}]"


def _counted(dice: random.Random) -> Made:
    return {"answers": [str(dice.randint(2, 30))], "eval": "regression"}, f"There are {dice.randint(2, 30)}."


#: Type of OCRBench v2 → its published number of items, and how one is made.
TYPES: dict[str, tuple[int, Callable[[random.Random], Made]]] = {
    "text recognition en": (800, _plain(4)),
    "fine-grained text recognition en": (200, _plain(30)),
    "full-page OCR en": (200, _plain(220)),
    "text grounding en": (200, _grounded),
    "VQA with position en": (300, _placed),
    "text spotting en": (200, _spotted),
    "key information extraction en": (400, _fields),
    "key information mapping en": (300, _fields),
    "document parsing en": (400, _outline(words, 12)),
    "chart parsing en": (400, _chart),
    "table parsing en": (400, _table),
    "formula recognition en": (400, _plain(12)),
    "math QA en": (300, _plain(1)),
    "text counting en": (200, _counted),
    "document classification en": (200, _plain(1)),
    "cognition VQA en": (800, _plain(8)),
    "diagram QA en": (300, _plain(1, eval="multiple choice")),
    "reasoning VQA en": (600, _plain(8)),
    "science QA en": (300, _plain(1, eval="multiple choice")),
    "APP agent en": (300, _plain(4)),
    "ASCII art classification en": (200, _plain(1, eval="multiple choice")),
    "full-page OCR cn": (200, _plain(800, han)),
    "key information extraction cn": (400, _chinese_fields),
    "handwritten answer extraction cn": (200, _plain(20, han, question="简答")),
    "document parsing cn": (300, _outline(han, 30)),
    "table parsing cn": (300, _table),
    "formula recognition cn": (200, _plain(12)),
    "cognition VQA cn": (200, _plain(10, han)),
    "reasoning VQA cn": (400, _plain(10, han)),
    "text translation cn": (400, _plain(80, han)),
}


def write_ocrbench_v2(root: Path, scale: float) -> dict[str, str]:
    """All types in their published numbers, in the prepared form; answers by sample id."""
    dice, answers = random.Random("ocrbench_v2"), {}
    (root / "images").mkdir(parents=True)
    with (root / "metadata.jsonl").open("w", encoding="utf-8") as file:
        for kind, (count, make) in TYPES.items():
            for number in range(max(1, round(count * scale))):
                truth, answer = make(dice)
                name = f"{kind}-{number:03d}"
                answers[name] = answer
                truth = {"question": "What is written here?", **truth}
                row = {"idx": len(answers), "sample_id": name, "ground_truth": truth, "metadata": {"type": kind}}
                file.write(json.dumps(row) + "\n")
    return answers


def grade(benchmark: Benchmark, samples: list[Sample], answers: dict[str, str]) -> tuple[float, list[list[Score]]]:
    """Seconds of processor time, and the scores of each sample."""
    given = [Prediction(sample=sample.id, text=answers[sample.id]) for sample in samples]
    benchmark.score(samples[0], given[0])  # what is imported late is imported now
    began = time.process_time()
    scores = [_scores(benchmark.score(*pair)) for pair in zip(samples, given, strict=True)]
    return time.process_time() - began, scores


def _scores(found: Any) -> list[Score]:
    return list(getattr(found, "scores", found))


def values_of(ident: str, samples: list[Sample], scores: list[list[Score]]) -> dict[Any, float]:
    """What is compared: the value of each question, by its place; the measures of each subset of CC-OCR."""
    if ident != "cc_ocr":
        found = [next(each.counts for each in one if each.measure == QUESTIONS[ident][1]) for one in scores]
        return {place: counts[0] / counts[1] for place, counts in enumerate(found)}
    summed: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for sample, one in zip(samples, scores, strict=True):
        for each in one:
            place = f"{sample.tags['track']} {sample.tags['subset']}"
            summed.setdefault((place, each.measure), []).append(each.counts)
    measures = {measure.name: measure for measure in get_benchmark(ident).measures}
    return {
        f"{place} {_OF_SUBSET[name]}": float(value_of(measures[name], np.asarray(rows, float).sum(axis=0)))
        for (place, name), rows in summed.items()
        if name in _OF_SUBSET
    }


def official(ident: str, python: str, folder: Path, rows: Iterator[dict[str, Any]]) -> tuple[float, Any]:
    """Seconds of processor time, and the values, of the official program; it runs in a folder that goes away."""
    code = _START + _PROGRAMS[QUESTIONS[ident][0]] + _END
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "rows.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)))
        command = [python, "-c", code, str(folder.resolve()), str(file), ident]
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        seconds, values = json.loads(Path(f"{file}.found").read_text())
    return seconds, values


def line_of(ident: str, scale: float, python: str, folder: Path | None) -> str:
    """One line: make a set, grade it once or twice."""
    benchmark = get_benchmark(ident)
    with tempfile.TemporaryDirectory() as home:
        root = Path(home) / ident
        if ident == "ocrbench_v2":
            answers = write_ocrbench_v2(root, scale)
        else:
            answers = write_prepared(ident, root, max(2, round(SIZES[ident][0] * scale)), images=False)
        samples = list(benchmark.load(root))
        ours, scores = grade(benchmark, samples, answers)
    line = f"{ident}: {len(samples):,} {SIZES[ident][1]}, ours {ours:.2f} s"
    if folder is None:
        return line
    rows = (
        {"id": each.id, "truth": each.truth, "tags": dict(each.tags), "answer": answers[each.id]} for each in samples
    )
    theirs, expected = official(ident, python, folder, rows)
    expected = dict(enumerate(expected)) if isinstance(expected, list) else expected
    found = values_of(ident, samples, scores)
    differ = [place for place, value in found.items() if abs(value - expected[place]) > 1e-6]
    kinds = sorted({str(samples[place].tags.get("type")) if isinstance(place, int) else place for place in differ})
    line += f", official {theirs:.2f} s, {theirs / ours:.1f} times; {len(differ)} of {len(found):,} values differ"
    return f"{line}{': ' if kinds else ''}{', '.join(kinds)}"


def main() -> None:
    """Grade each set, print one line each."""
    parser = argparse.ArgumentParser(description="Grading of questions, ours and the official programs'.")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the real sets' sizes")
    parser.add_argument("--only", default=",".join(QUESTIONS))
    parser.add_argument("--python", default=sys.executable, help="a Python that has what the official programs import")
    for option in _PROGRAMS:
        parser.add_argument(f"--{option.replace('_', '-')}", type=Path, metavar="DIR")
    chosen = parser.parse_args()
    for ident in chosen.only.split(","):
        print(line_of(ident, chosen.scale, chosen.python, getattr(chosen, QUESTIONS[ident][0])), flush=True)


if __name__ == "__main__":
    main()

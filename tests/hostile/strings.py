"""Hostile answers, and everything that must stand them: every public metric, adapter and benchmark's `score`.

    python -m tests.hostile.strings --count 20000 [--jobs 2] [--start 0]

Strings are made from their number, so that a finding can be had again: `--start NUMBER --count 1`. A finding is an
exception that is not documented, a number that is none, or a call that takes more than `SLOW` seconds of CPU time.
Each child process has the memory of a scoring worker; one that dies or hangs is a finding, and the next one goes on
after it. CDM takes a TeX run for a call, so the formulas of many strings go to it together, as in scoring; where that
fails, each string is tried apart.
"""

from __future__ import annotations

import argparse
import faulthandler
import inspect
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, get_args

import msgspec

from tests.support.synthetic import MAKERS, write_prepared

#: Seconds of CPU time that a call may take (a megabyte of table rows takes 10), and seconds after which it hangs; the
#: scoring worker allows 120. What waits without using time hangs after `PATIENCE` times as many seconds of the clock.
SLOW = 20.0
DEAD = 120.0
#: Strings whose formulas are drawn together (of more, one that spoils a TeX run spoils more), and how much longer that
#: may take than one call.
TOGETHER = 20
PATIENCE = 10
#: Every so many strings are drawn for CDM, as they are and as answers to the benchmarks that have it (half a second of
#: CPU time each; `LOUPE_HOSTILE_DRAWN=1` draws all), and every so many of these alone as well.
AS_FORMULAS = int(os.environ.get("LOUPE_HOSTILE_DRAWN", "7"))
ALONE = 20
#: Metrics that take a TeX run for a call.
DRAWN = ("cdm", "cdm_pairs")
MEMORY = 4 << 30
#: A child ends with this where these lines here are wrong, and not what they attack.
_BUG = 70
REFERENCE = "Total amount 1,234.50 due on 3 May 2019, <b>harbour</b> book"
TABLE = (
    "<html><body><table><tr><td>kitten</td><td colspan=2>12.5</td></tr><tr><td/><td>x</td></tr></table></body></html>"
)

#: Stands for a parameter that a function has not.
_NONE = inspect.Parameter("none", inspect.Parameter.POSITIONAL_ONLY)

Maker = Callable[[random.Random, int], str]
Call = Callable[[], object]


def _repeat(unit: str, tail: str = "") -> Maker:
    return lambda dice, size: unit * max(1, size // len(unit)) + tail


def _shuffled(pieces: Sequence[str]) -> Maker:
    def make(dice: random.Random, size: int) -> str:
        parts, length = [], 0
        while length < size:
            parts.append(dice.choice(pieces))
            length += len(parts[-1])
        return "".join(parts)

    return make


def _pieces(text: str) -> list[str]:
    return [*text.split(" "), " "]


_TAGS = _pieces(
    "<table> </table> <tr> </tr> <td> </td> <th <td\tcolspan='3' > <thead> <tbody> </ <b> </i> <br/> <!-- --> <![CDATA["
    " ]]> &amp; &#x110000; &#xD800; &#0; word <caption> <colgroup> <html> </body> <table/> <svg> <math> <p = ' \""
)
_JSON = _pieces('{ } [ ] " : , "date": null 1e999999 NaN \\u \\ud800 \\ ```json\n \'')
_LATEX = _pieces("{ } $ $$ \\ \\frac \\left( \\begin{array}{ \\end{array} ^ _ & % x")
_MARKDOWN = _pieces("| --- \n ``` # |:-:| ** <think> </think> </s> <|im_end|> - \t a \\|")
_UNICODE = _pieces("\0 \ud800 \udfff \u202e \u0301\u0301\u0301 \ufeff \u2028 \x85 \x1b[31m 😀 ﷺ İ ß 漢 \r")
_SPANS = ["99999999999999999999", "-1", "1e309", "²", "٣", "0x10", "", "NaN", "1" * 5000, "3.5", "65534", "1000", "\0"]
_LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>'
    "<table><tr><td>&c;</td></tr></table>"
)


def _span_table(dice: random.Random, size: int) -> str:
    cells = "".join(
        f'<td {dice.choice(["colspan", "rowspan"])}="{dice.choice(_SPANS)}">{dice.choice(_UNICODE)}</td>'
        for _ in range(1 + size // 60)
    )
    return f"<table><tr>{cells}</tr></table>"


def _nested_tables(dice: random.Random, size: int) -> str:
    depth = 1 + size // 40
    return "<table><tr><td>" * depth + "x" + "</td></tr></table>" * dice.choice([0, depth // 2, depth])


def _pipe_table(dice: random.Random, size: int) -> str:
    columns = dice.choice([2, 30, 1 + size // 8])
    line = "|" + "a|" * columns + "\n"
    return line + "|" + "-|" * columns + "\n" + line * (size // len(line))


def _json_object(dice: random.Random, size: int) -> str:
    deep = '{"date":' * (size // 16) + dice.choice(["1", '"x"', "", "1" * 9000]) + "}" * (size // 16)
    wide = "{" + ",".join(f'"k{n}": "{n}"' for n in range(size // 12)) + "}"
    return dice.choice([deep, wide, wide[:-1], f"{wide}\n{deep}"])


def _mutated(dice: random.Random, size: int) -> str:
    """An honest answer to some benchmark with hostile pieces in it."""
    ident = dice.choice(sorted(MAKERS))
    text = MAKERS[ident](dice, dice.randrange(100)).answer[: max(size, 50)]
    for _ in range(dice.randint(1, 6)):
        place = dice.randrange(len(text) + 1)
        piece = dice.choice(dice.choice([_TAGS, _JSON, _LATEX, _MARKDOWN, _UNICODE]))
        text = text[:place] + piece * dice.choice([1, 1, 40]) + text[place + dice.randint(0, 9) :]
    return text


def _noise(dice: random.Random, size: int) -> str:
    return "".join(chr(dice.choice([dice.randrange(256), dice.randrange(0x11_0000)])) for _ in range(min(size, 20_000)))


KINDS: Sequence[Maker] = (
    _mutated,
    _shuffled(_TAGS),
    _mutated,
    _shuffled(_JSON),
    _span_table,
    _shuffled(_LATEX),
    _nested_tables,
    _shuffled(_MARKDOWN),
    _json_object,
    _shuffled(_UNICODE),
    _pipe_table,
    _noise,
    _shuffled([*_TAGS, *_JSON, *_LATEX, *_MARKDOWN, *_UNICODE]),
    *map(_repeat, ("<div>", "[", '{"a":', "{", "\\frac{", "$", "`", "<think>", "&lt;", "\\\\", "|", "<td>x")),
    *map(_repeat, ("a", " ", "\n", "\0", "\ud800", "ab ", "<", "# a\n", "1", "- a\n  ", "0.5 ", ", ", "| a |\n")),
    _repeat(" ", "x"),
    _repeat("a", "<table>"),
    lambda dice, size: _LAUGHS,
    lambda dice, size: '<?xml version="1.0" encoding="utf-16"?>' + TABLE,
    lambda dice, size: "",
)


def hostile(number: int, *, largest: int = 1_000_000) -> str:
    """The hostile string of this number: most are short, a quarter thousands of characters, one in 200 a megabyte."""
    dice = random.Random(number)
    chance = dice.random()
    size = dice.randint(1, 400) if chance < 0.75 else dice.randint(400, 8_000) if chance < 0.995 else 1_000_000
    return KINDS[number % len(KINDS)](dice, min(size, largest))


def metric_calls(answer: str, other: str) -> Iterator[tuple[str, Call]]:
    """Every public metric that takes texts, told by the names of its parameters."""
    import loupe.metrics
    from loupe.metrics.teds import VARIANTS

    for name in loupe.metrics.__all__:
        function = getattr(loupe.metrics, name)
        if inspect.isclass(function):
            continue
        first, second = [*inspect.signature(function).parameters.values(), _NONE, _NONE][:2]
        if first.name == "text":
            yield name, lambda f=function: f(answer)
        elif first.name == "predictions":
            yield name, lambda f=function: f([answer], [other])
        elif first.name == "pairs":
            yield name, lambda f=function: f([(answer, other), (other, answer)])
        elif second is not _NONE and second.name == "references":
            yield name, lambda f=function: f(answer, [other, answer])
        elif first.name == "prediction" and second is not _NONE:
            yield name, lambda f=function: f(answer, other)
    page = f"<html><body>{answer}</body></html>"
    for variant in VARIANTS:
        yield f"teds {variant}", lambda v=variant: loupe.metrics.teds(page, TABLE, variant=v)
        yield f"teds_struct {variant}", lambda v=variant: loupe.metrics.teds_struct(TABLE, page, variant=v)


def adapter_calls(answer: str) -> Iterator[tuple[str, Call]]:
    """Every adapter alone."""
    from loupe.engines.adapters.steps import STEPS

    for name, step in STEPS.items():
        yield f"adapter {name}", lambda f=step: f(answer)


class Subjects:
    """A few samples of every benchmark in every variant of its scoring, from data of our own."""

    def __init__(self, folder: Path) -> None:
        from loupe.benchmarks.registry import benchmark_ids, get_benchmark

        self.samples: list[tuple[str, Any, Any]] = []
        for ident in benchmark_ids():
            benchmark = get_benchmark(ident)
            root = None
            if ident in MAKERS:
                root = folder / ident
                write_prepared(ident, root, 2, images=False)
            for options in _variants(benchmark.load):
                for sample in islice(benchmark.load(root, **options), 2):
                    label = " ".join([f"score {ident}", *options.values()])
                    self.samples.append((label, benchmark, sample))

    def asked(self, number: int) -> list[tuple[str, Any, Any]]:
        """The samples that this string answers, most strings without CDM."""
        chosen = self.samples[number % 2 :: 2]
        if number % AS_FORMULAS == 0:
            return chosen
        return [(label, benchmark, _without_cdm(sample)) for label, benchmark, sample in chosen]

    def calls(self, number: int, answer: str, adapters: Sequence[str]) -> Iterator[tuple[str, Call]]:
        """`score` on every other sample, and the whole way through the scoring worker for one of them."""
        from loupe.scoring.scorer import score_sample
        from loupe.types import Prediction

        prediction = Prediction(sample="s", text=answer)
        for label, benchmark, sample in self.asked(number):
            yield label, lambda b=benchmark, s=sample: b.score(s, prediction)
        label, benchmark, sample = self.samples[number % len(self.samples)]
        sample = sample if number % AS_FORMULAS == 0 else _without_cdm(sample)

        def whole() -> object:
            row = score_sample(benchmark, sample, prediction, adapters)
            msgspec.msgpack.encode(row)
            if row.diagnostics.get("failed"):
                raise AssertionError("diagnostics failed")
            return row.scores

        yield f"whole {label}", whole


def _without_cdm(sample: Any) -> Any:
    return replace(sample, scoring={**sample.scoring, "cdm": "off"}) if "cdm" in sample.scoring else sample


def _variants(load: Callable[..., object]) -> list[dict[str, str]]:
    """Each value of the options that choose scoring rules; the other options stay at their defaults."""
    parameters = inspect.signature(load, eval_str=True).parameters
    # Words that need no files of WordNet, and no browser.
    fixed = {name: value for name, value in (("words", "stems"), ("math", "skip")) if name in parameters}
    for name in ("variant", "text", "mode"):
        # Variants of a page's picture score alike.
        if name in parameters and get_args(parameters[name].annotation) and parameters[name].default != "none":
            return [{**fixed, name: value} for value in get_args(parameters[name].annotation)]
    return [fixed]


def documented(error: Exception) -> bool:
    """Whether an exception is one that a caller is told of: Loupe's family, and what metrics say they raise."""
    from loupe.errors import LoupeError
    from loupe.metrics.teds.table_tree import TedsError

    return isinstance(error, LoupeError | TedsError)


def is_number(value: object) -> bool:
    """Whether every number in a metric's value or a benchmark's scores is finite; `nan` is "not computed"."""
    if isinstance(value, float):
        return not math.isinf(value)
    if isinstance(value, list | tuple):
        return all(map(is_number, value))
    counts = getattr(value, "counts", ())
    return all(math.isfinite(count) for count in counts)


def attack(
    numbers: Sequence[int],
    report: Callable[[dict[str, object]], None],
    mark: Callable[[int, bool], None],
    *,
    together: int = TOGETHER,
) -> None:
    """Every string through everything; findings are reported as they come. `mark` notes what is being tried: a string,
    or (True) the formulas of the batch that begins with it."""
    from loupe.engines.adapters.steps import STEPS

    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        subjects = Subjects(Path(folder))
        for start in range(0, len(numbers), together):
            batch = numbers[start : start + together]
            mark(batch[0], together > 1)
            _arm(DEAD * PATIENCE)
            for number, label, finding in _drawn_together(batch, subjects):
                report({"number": number, "call": label, "length": len(hostile(number)), "finding": finding})
            for number in batch:
                mark(number, False)
                answer = hostile(number)
                alone = number % (ALONE * AS_FORMULAS) == 0
                metrics = (each for each in metric_calls(*_pair(number)) if alone or each[0] not in DRAWN)
                calls = [*metrics, *adapter_calls(answer), *subjects.calls(number, answer, list(STEPS))]
                for label, call in calls:
                    _arm(DEAD)
                    finding = _try(call)
                    if finding:
                        report({"number": number, "call": label, "length": len(answer), "finding": finding})
    faulthandler.cancel_dump_traceback_later()
    signal.setitimer(signal.ITIMER_PROF, 0)


def _arm(seconds: float) -> None:
    """End this process, with a traceback, where the next call takes so much CPU time, or ten times as long waiting.

    A machine with other work, or a low priority, is no hang.
    """
    faulthandler.register(signal.SIGPROF, all_threads=False, chain=True)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    faulthandler.dump_traceback_later(seconds * PATIENCE, exit=True)


def _pair(number: int) -> tuple[str, str]:
    """The string of this number as a prediction, sometimes as a reference."""
    answer = hostile(number)
    other = hostile(number * 31 + 1, largest=4_000) if number % 3 == 0 else REFERENCE
    return (other, answer) if number % 5 == 0 else (answer, other)


def _drawn_together(numbers: Sequence[int], subjects: Subjects) -> Iterator[tuple[int, str, str]]:
    """(number, call, finding) for CDM of many strings, in both orders; and let the benchmarks draw theirs."""
    from loupe.types import Prediction

    pairs = {number: [_pair(number), _pair(number)[::-1]] for number in numbers if number % AS_FORMULAS == 0}
    whole = _try(lambda: _cdm([pair for both in pairs.values() for pair in both]), slow=SLOW * PATIENCE)
    if whole:
        apart = [(number, _try(lambda both=both: _cdm(both))) for number, both in pairs.items()]
        found = [(number, "cdm_pairs", finding) for number, finding in apart if finding]
        yield from found or [(numbers[0], f"cdm_pairs of {len(numbers)} strings together", whole)]
    asked: dict[str, tuple[Any, list[Any]]] = {}
    for number in numbers:
        prediction = Prediction(sample="s", text=hostile(number))
        for label, benchmark, sample in subjects.asked(number):
            if benchmark.prepare is not None:
                asked.setdefault(label, (benchmark, []))[1].append((sample, prediction))
    for label, (benchmark, samples) in asked.items():
        finding = _try(lambda b=benchmark, s=samples: b.prepare(s), slow=SLOW * PATIENCE)
        if finding:
            yield numbers[0], f"prepare {label} of {len(samples)} answers together", finding


def _cdm(pairs: Sequence[tuple[str, str]]) -> list[float]:
    import loupe.metrics

    found = loupe.metrics.cdm_pairs(pairs)
    return [value for one in found for value in (one.precision, one.recall, one.f1)]


def _try(call: Call, *, slow: float = SLOW) -> str:
    began = time.process_time()
    try:
        value = call()
    except Exception as error:  # noqa: BLE001  finding out what is raised is what this is for
        if not documented(error):
            return f"{type(error).__name__}: {str(error)[:200]!a}"
        value = 0.0
    seconds = time.process_time() - began
    if seconds > slow:
        return f"took {seconds:.1f} s of CPU time"
    return "" if is_number(value) else f"not a finite number: {str(value)[:200]}"


def _child(start: int, end: int, place: Path, together: int) -> None:
    """Attack with some numbers, findings as JSON lines on standard output; `place` holds what is being tried."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    with place.open("wb", buffering=0) as file:
        attack(
            range(start, end),
            lambda finding: print(json.dumps(finding), flush=True),
            lambda number, batch: os.pwrite(file.fileno(), b"%012d %d" % (number, batch), 0) and None,
            together=together,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"peak_mib": round(peak)}), flush=True)


def run_children(start: int, end: int, report: Callable[[dict[str, Any]], None]) -> None:
    """All numbers in processes one after another; where one dies, that is a finding, and the next begins after it. One
    that died over many formulas together is followed by one that tries these strings apart."""
    parts = [(start, end, TOGETHER)]
    while parts:
        start, end, together = parts.pop()
        if start >= end:
            continue
        code, number, batch, errors = _run_child(start, end, together, report)
        if code == 0:
            continue
        if number < 0 or code == _BUG:
            report({"number": number, "call": "tests/hostile/strings.py itself", "finding": errors})
            return
        call = f"{together} strings together" if batch else "?"
        report({"number": number, "call": call, "finding": f"exit code {code}", "trace": errors[-1500:]})
        rest = min(number + together, end) if batch else number + 1
        parts.append((rest, end, together))
        if batch:
            parts.append((number, rest, 1))


def _run_child(
    start: int, end: int, together: int, report: Callable[[dict[str, Any]], None]
) -> tuple[int, int, bool, str]:
    """One process: exit code, the last number that it tried and whether as the first of a batch, standard error."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "number"
        words = [sys.executable, "-m", "tests.hostile.strings", "--child", str(place), "--together", str(together)]
        words += ["--start", str(start), "--count", str(end - start)]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.extend(child.stderr or ()), daemon=True)
        reader.start()
        for line in child.stdout or ():
            report(json.loads(line))
        code = child.wait()
        reader.join()
        number, batch = (place.read_bytes() if place.exists() else b"").split() or (b"-1", b"0")
        return code, int(number), batch == b"1", "".join(errors)


def main() -> int:
    """Attack, print findings, and end with 1 if there are any."""
    parser = argparse.ArgumentParser(description="Hostile strings through every metric, adapter and scorer.")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--together", type=int, default=TOGETHER, help="strings whose formulas are drawn together")
    chosen = parser.parse_args()
    end = chosen.start + chosen.count
    if chosen.child:
        try:
            _child(chosen.start, end, chosen.child, chosen.together)
        except Exception:  # noqa: BLE001  a bug of ours must not look like a finding
            traceback.print_exc()
            return _BUG
        return 0
    began, findings, peaks = time.monotonic(), [], []

    def report(line: dict[str, Any]) -> None:
        if "peak_mib" in line:
            peaks.append(line["peak_mib"])
        else:
            findings.append(line)
            print(json.dumps(line), flush=True)

    bounds = [chosen.start + chosen.count * part // chosen.jobs for part in range(chosen.jobs + 1)]
    threads = [threading.Thread(target=run_children, args=(low, high, report)) for low, high in pairwise(bounds)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    peak = f"{max(peaks)} MiB at most" if peaks else "memory unknown"
    print(f"{chosen.count:,} strings, {len(findings)} findings, {seconds:.0f} s, {peak}", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

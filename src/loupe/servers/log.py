"""The log of a server that died, and what it means for the person who started it.

Source: docs/protocols/engines.md#outcomes (markers after which nothing helps), #server-start (hints).
"""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

from loupe.engines.chat.http_failures import FATAL_MARKERS
from loupe.servers.templates import Template

#: Lines that are shown of a server that ended without a message that we know.
LAST_LINES = 50
#: Bytes at the end of a log that are looked at.
_TAIL = 256 << 10
#: Characters of a line that are looked at, and shown.
_LONGEST = 500
_FATAL = re.compile("|".join([*map(re.escape, FATAL_MARKERS), "detected errors during sampling"]), re.I)
#: The process that a line is from, where a server has several: vLLM's `(EngineCore pid=17) `.
_PROCESS = re.compile(r"^\(\w[\w -]{0,40} pid=\d+\) ")
#: A line that the server itself calls an error, and its words: of Python's logging, llama.cpp, argparse and Go, C++.
_OWN_ERROR = re.compile(
    r"^(?:\[?[\d:T,. -]{8,30}\]? ?)?(?:ERROR|CRITICAL|FATAL)\b:?(?: [\d-]+ [\d:,.]+)?(?: +\[[^\]\s]{1,80}\])? "
    r"(?P<log>.*)"
    r"|^\d+(?:\.\d+){2,3} E +(?P<llama>.*)"
    r"|^(?P<usage>(?:[\w .-]{1,60}: )?[Ee]rror: .*)"
    r"|^(?P<abort>.*GGML_ASSERT.*|\s*what\(\): .*)"
)
#: The last line of a traceback.
_EXCEPTION = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception)\b(?:: |$)")
#: Lines that tell and do not complain, and those of a debugger.
_TOLD = re.compile(r"\b(?:INFO|DEBUG|WARN(?:ING)?)\b|^\d+(?:\.\d+){2,3} [DIW] |^\d+\t|\bServerArgs\(")
#: Lines that do not go on with the message of an exception.
_OTHER = re.compile(
    rf"{_TOLD.pattern}|{_EXCEPTION.pattern}|\.py:\d+: |further information"
    r"|^(?:\[|Traceback|Process |During handling|The above exception| +File )"
)
#: Exceptions that only pass on another one.
_PASSED_ON = re.compile(r"see root cause above|initialization failed|worker failed with error", re.I)
#: Lines of its own errors that are shown of a server without a traceback.
_OWN_LINES = 4
#: What stands in these lines → what to do; the first that is found counts.
_KNOWN = (
    (r"address already in use", "choose another port: --server-port auto"),
    (r"trust[_-]remote[_-]code", "if you trust the model's own code, add --server-arg=--trust-remote-code"),
    (
        r"gated repo|401 client error|access to model .{1,200} is restricted",
        "set HF_TOKEN, and pass it on: -o 'pass_env=[\"HF_TOKEN\"]'",
    ),
    (r"unrecognized arguments?:|invalid argument:|unknown option|no such option", "see the server's own --help"),
    (
        r"no such file or directory|repository not found|does not appear to have a file|is not a local folder",
        "check the name of the model",
    ),
)


def size(log: Path) -> int:
    """The length of the log now."""
    return log.stat().st_size if log.exists() else 0


def fatal_line(log: Path, start: int = 0) -> str:
    """The line after which the server answers nothing sensible (out of GPU memory), "" if there is none.

    Only what was written after the first `start` bytes counts.
    """
    return next((_own_words(line) or line for line in _lines(log, start) if _FATAL.search(line)), "")


def last_lines(log: Path, start: int = 0) -> list[str]:
    """Return the last lines of the log that are not blank."""
    return [line for line in _lines(log, start)[-LAST_LINES:] if line.strip()]


def explain(log: Path, start: int, template: Template) -> tuple[str, str]:
    """The server's own reason for its end, and what to do; both "" if it gives none, or we do not know.

    An exception in its own error lines comes first, where it was raised first; then the last one of a traceback; then
    error lines. Other lines (arguments that are told, a debugger's) say nothing of it.
    """
    if fatal := fatal_line(log, start):
        return fatal, memory_hint(template)
    lines = _raw_lines(log, start)
    said = [cause] if (cause := _cause(lines)) else [line.strip() for line in reversed(lines) if not _TOLD.search(line)]
    for pattern, hint in _KNOWN:
        for words in said:
            if re.search(pattern, words, re.I):
                return words, hint
    return cause, ""


def _cause(lines: list[str]) -> str:
    own = [words for line in lines if (words := _own_words(line)) is not None]
    if raised := _exceptions(own):
        return raised[0]
    if raised := _exceptions([_PROCESS.sub("", line) for line in lines]):
        return next((each for each in reversed(raised) if not _PASSED_ON.search(each)), raised[-1])
    said = dict.fromkeys(words.strip() for words in own if words.strip())
    return "; ".join(itertools.islice(said, _OWN_LINES))


def _own_words(line: str) -> str | None:
    """The words of a line that the server calls an error, without level, time and place; None for other lines."""
    found = _OWN_ERROR.match(_PROCESS.sub("", line))
    return next(words for words in found.groups() if words is not None) if found else None


def _exceptions(lines: list[str]) -> list[str]:
    """Every exception with its message, which may go on in the next lines."""
    found = []
    for number, line in enumerate(lines):
        if _EXCEPTION.match(line):
            rest = itertools.takewhile(lambda each: not _OTHER.search(each), lines[number + 1 : number + 4])
            found.append(" ".join(part.strip() for part in (line, *rest))[:_LONGEST])
    return found


def memory_hint(template: Template) -> str:
    """The remedy if memory ran out."""
    return f"less memory: {template.memory}"


def _lines(log: Path, start: int) -> list[str]:
    """The last lines of the log without the space around them."""
    return [line.strip() for line in _raw_lines(log, start)]


def _raw_lines(log: Path, start: int) -> list[str]:
    """The last lines of the log, each bounded: progress bars are one line without an end."""
    try:
        with log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            # A log that became shorter was written anew.
            file.seek(max(start if start <= end else 0, end - _TAIL))
            text = file.read(_TAIL).decode(errors="replace")
    except OSError:
        return []
    return [line[:_LONGEST] for line in re.split(r"[\r\n]+", text)]

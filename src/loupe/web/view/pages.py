"""The viewer's pages, rendered from the report's templates and a few of its own; everything is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode

from markupsafe import Markup

from loupe import __version__
from loupe.errors import LoupeError
from loupe.report import html
from loupe.web.responses import SHARED_FILES, static_files
from loupe.web.view import grid, heat, run_page
from loupe.web.view.board import Board, Row
from loupe.web.view.grid import Wanted
from loupe.web.view.run_reader import RunIndex
from loupe.web.view.sample_page import address, sample_index
from loupe.web.view.shelf import Shelf
from loupe.web.view.two_runs import compare_context, compared_rows

JsonObject: TypeAlias = dict[str, Any]

_HERE = Path(__file__).parent
_REPORT = Path(html.__file__).parent / "static"
#: Everything that is served as it is; the look is the report's.
STATIC_FILES = (
    SHARED_FILES
    | {name: _REPORT / name for name in ("report.css", "match.css", "facts.css")}
    | static_files(_HERE / "static")
)
#: Published rows below each leaderboard of the first page.
_PUBLISHED = 4
#: Characters of an answer that can be edited.
LONGEST_EDITED = 1_000_000
_MATCH = ("overlay.js", "tables.js", "formulas.js", "match.js", "layout.js")


def sample_script() -> str:
    """The report's script for one sample, with what the file holds asked from the server."""
    of_report = [
        _REPORT / name
        for name in (
            "data.js",
            "visible.js",
            "text.js",
            "diff.js",
            "moved.js",
            "sample.js",
            *_MATCH,
            "facts.js",
            "fields.js",
        )
    ]
    files = [of_report[0], _HERE / "static" / "served.js", *of_report[1:], _HERE / "static" / "served_page.js"]
    return '(() => {\n"use strict";\n' + "\n".join(file.read_text(encoding="utf-8") for file in files) + "})();\n"


class Pages:
    """Renders."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._templates = html.environment(_HERE / "templates")
        self._templates.globals |= {
            "sample_address": lambda group, sample, _: f"/b/{group['slug']}/sample?{urlencode({'id': sample})}",
            "row_address": lambda group, place: f"/run/{group['runs'][place].key}",
            "version": __version__,
        }
        self.legend = html.legend()

    def home(self) -> str:
        """All benchmarks with their leaderboards."""
        look = self._shelf.look()
        groups, wrong = [], {}
        for board in look.boards.values():
            try:
                groups.append(self._short(self._group(board)))
            except (LoupeError, ValueError, OSError) as error:
                # One benchmark that cannot be shown must not hide the others.
                wrong[board.key] = str(error)
        boards = [board for board in look.boards.values() if board.key not in wrong]
        shown = [str(root) for root in self._shelf.roots]
        running = [self._live(board, run) for board in boards for run in board.runs if run.state != "done"]
        damaged = sorted([*look.damaged.items(), *wrong.items()])
        values = {"groups": groups, "roots": shown, "damaged": damaged, "running": running}
        return self._render("home.html", None, "", follow="/state", stamp=look.stamp, **values)

    @staticmethod
    def _short(group: JsonObject) -> JsonObject:
        """The group with the first of its published rows; its own page has them all."""
        return group | {"published": group["published"][:_PUBLISHED], "unlisted": len(group["published"]) - _PUBLISHED}

    def refused(self, message: str, hint: str = "") -> str:
        """The page in place of one that is not there."""
        return self._render("refused.html", None, "refused", message=message, hint=hint)

    def board(self, board: Board) -> str:
        """Everything about one benchmark."""
        board.samples()  # What they say of changed references stands above the numbers.
        group = self._group(board)
        shown = {"group": group, "groups": [group], "explained": _is_explained(board)}
        running = [self._live(board, run) for run in board.runs if run.state != "done"]
        return self._render("board.html", board, "", running=running, **shown, **_state(board))

    def _group(self, board: Board) -> JsonObject:
        context = board.context()
        title = self._shelf.look().title(board)
        return context | {"runs": board.ordered(), "note": context["note"] or board.data_note, "title": title}

    def _live(self, board: Board, run: RunIndex) -> JsonObject:
        title = self._shelf.look().title(board)
        return {"run": run, "label": run.folder.info.engine, "title": title, **run_page.progress(board, run)}

    def run(self, board: Board, run: RunIndex) -> str:
        """One run."""
        return self._render("run.html", board, "run", **run_page.run_context(board, run), **_state(board))

    def slices(self, board: Board, key: str) -> str:
        """The heat map of one run."""
        maps = heat.heat_maps(board)
        chosen = next((each for each in maps if each.key == key), maps[0] if maps else None)
        return self._render(
            "slices.html", board, "slices", maps=maps, chosen=chosen, legend=self.legend, **_state(board)
        )

    def samples(self, board: Board, wanted: Wanted, query: JsonObject) -> str:
        """A page of the list of samples."""
        rows = grid.chosen_rows(board, wanted)
        pages = max(1, -(-len(rows) // grid.PAGE))
        number = min(wanted.page, pages)
        shown = rows[(number - 1) * grid.PAGE : number * grid.PAGE]
        kept = {name: value for name, value in query.items() if value and name != "page"}
        measures, largest = board.measures(), grid.largest_values(board.rows())
        names = [entrant.label for entrant in board.group().entrants]
        cards = [self._card(board, row, wanted, kept, (measures, largest, names)) for row in shown]
        return self._render(
            "samples_page.html",
            board,
            "samples",
            cards=cards,
            count=len(rows),
            everything=len(board.rows()),
            number=number,
            pages=pages,
            first=(number - 1) * grid.PAGE + 1,
            last=(number - 1) * grid.PAGE + len(shown),
            turn=lambda to: f"/b/{board.key}/samples?{urlencode({**kept, 'page': to})}",
            without_error=f"/b/{board.key}/samples?{urlencode({n: v for n, v in kept.items() if n != 'error'})}",
            orders=grid.ORDERS,
            outcomes=grid.present_outcomes(board.rows()),
            tags=grid.useful_tags(board.rows()),
            runs=list(zip(board.ordered(), names, strict=True)),
            query=query,
            wanted=wanted,
            legend=self.legend,
            **_state(board),
        )

    def _card(self, board: Board, row: Row, wanted: Wanted, kept: JsonObject, known: Any) -> JsonObject:
        measures, largest, names = known
        places = wanted.runs or tuple(range(len(row.cells)))
        goods = [grid.goodness(row.cells[place], measures, largest) for place in places]
        found = [good for good in goods if good is not None]
        step = grid.step_of_good(sum(found) / len(found) if found else None)
        scores = []
        for place, good in zip(places, goods, strict=True):
            cell = row.cells[place]
            bad = cell.outcome in grid.NOT_ANSWERED
            plain = bad or cell.outcome == "waiting"
            one = grid.step_of_good(good)
            scores.append(
                {
                    "name": names[place],
                    "text": grid.OUTCOMES.get(cell.outcome, cell.outcome) if plain else grid.value_text(cell, measures),
                    "mark": {"empty": "empty", "truncated": "cut off", "repeated": "loop"}.get(cell.outcome, ""),
                    "swatch": "q-failed" if bad else "q-none" if one is None else f"q{one}",
                }
            )
        return {
            "ident": row.ident,
            "address": address(board, "sample", row.ident) + (f"&{urlencode(kept)}" if kept else ""),
            "picture": f"{address(board, 'picture', row.ident)}&n=0&small=1" if self._has_picture(board, row) else "",
            "step": "q-none" if step is None else f"q{step}",
            "scores": scores,
        }

    def _has_picture(self, board: Board, row: Row) -> bool:
        sample = board.samples().get(row.ident)
        return bool(sample and sample.images)

    def sample(self, board: Board, ident: str, wanted: Wanted, query: JsonObject) -> str | None:
        """The page of one sample, among those of the list that it was opened from."""
        compared = query.get("three") == "1" and len(wanted.runs) == 2
        rows = compared_rows(board, wanted.runs, query) if compared else grid.chosen_rows(board, wanted)
        at = next((place for place, row in enumerate(rows) if row.ident == ident), None)
        if at is None:
            rows = board.rows()
            at = next((place for place, row in enumerate(rows) if row.ident == ident), None)
        if at is None:
            return None
        kept = {name: value for name, value in query.items() if value and name not in ("id", "page")}
        rest = f"&{urlencode(kept)}" if kept else ""
        beside = [rows[place].ident if 0 <= place < len(rows) else None for place in (at - 1, at + 1)]
        links = {
            "payload": address(board, "payload", ident) + rest,
            "drawings": address(board, "drawings", ident) + rest,
            "thumbnail": f"{address(board, 'picture', ident)}&n=0&small=1",
            "whatIf": address(board, "what-if", ident) + rest,
            "listed": _listed(board, kept),
            "listedAs": "Compare" if compared else "Samples",
            "previous": address(board, "sample", beside[0]) + rest if beside[0] is not None else "",
            "next": address(board, "sample", beside[1]) + rest if beside[1] is not None else "",
            "place": at,
            "count": len(rows),
        }
        index = html.inline_json(sample_index(board, rows, at, wanted.runs, links))
        return self._render("sample_page.html", board, "sample", name=ident, index=Markup(index), compared=compared)

    def what_if(self, board: Board, run: RunIndex, ident: str, text: str, reference: str, query: JsonObject) -> str:
        """The page where an answer can be edited."""
        sample, rows = board.samples().get(ident), board.rows()
        at = next(place for place, row in enumerate(rows) if row.ident == ident)
        picture = f"{address(board, 'picture', ident)}&n=0" if sample and sample.images else ""
        kept = {name: value for name, value in query.items() if value and name not in ("id", "page", "run")}
        back = address(board, "sample", ident) + (f"&{urlencode(kept)}" if kept else "")
        links = {"picture": picture, "back": back, "listed": _listed(board, kept)}
        index = sample_index(board, rows, at, (), links)
        # What a textarea would not hold is not scored: a part of an answer has another score.
        whole = len(text) <= LONGEST_EDITED
        why = (
            "" if whole else f"This answer has {len(text):,} characters. Only its beginning is shown; it is not scored."
        )
        why = why or ("" if sample else "The ground truth is missing, so nothing can be scored.")
        reference = reference[:LONGEST_EDITED]
        start = {"text": text[:LONGEST_EDITED], "reference": reference, "board": board.key, "sample": ident, "why": why}
        return self._render(
            "what_if.html",
            board,
            "sample",
            name=ident,
            run=run,
            runs=[(one, board.labels[one.key]) for one in board.ordered()],
            text=text[:LONGEST_EDITED],
            start=Markup(html.inline_json(start)),
            index=Markup(html.inline_json(index)),
            picture=picture,
            back=back,
            why=why,
        )

    def compare(self, board: Board, query: JsonObject) -> str:
        """Two runs, sample by sample."""
        return self._render("compare.html", board, "compare", **compare_context(board, query), **_state(board))

    def _render(self, template: str, board: Board | None, here: str, **values: Any) -> str:
        parts = [("/", "Benchmarks", board is None and not here)]
        if board is not None:
            root = f"/b/{board.key}"
            parts += [(root, "Leaderboard", here == ""), (f"{root}/slices", "Slices", here == "slices")]
            parts += [(f"{root}/samples", "Samples", here in ("samples", "sample"))]
            parts += [(f"{root}/compare", "Compare", here == "compare")] if len(board.runs) > 1 else []
            values |= {"title": self._shelf.look().title(board), "root": root}
            values["changed_note"], values["part_note"] = board.changed_note, board.part_note
            values["damaged"] = [(board.labels[run.key], run.problem) for run in board.runs if run.problem]
        return self._templates.get_template(template).render(parts=parts, **values)


def _is_explained(board: Board) -> bool:
    benchmark = board.group().benchmark
    return benchmark is not None and benchmark.explain is not None


def _listed(board: Board, kept: JsonObject) -> str:
    """The list that a sample was opened from."""
    name = "compare" if kept.get("three") == "1" else "samples"
    return f"/b/{board.key}/{name}{'?' + urlencode(kept) if kept else ''}"


def _state(board: Board) -> JsonObject:
    return {"follow": f"/state?b={board.key}", "stamp": board.stamp, "pages_note": board.pages_note}

"""The viewer's pages, rendered from the report's templates and a few of its own; everything is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode

from markupsafe import Markup

from loupe import __version__, report
from loupe.errors import LoupeError
from loupe.report import page
from loupe.report.terminal import format_value
from loupe.view import grid, heat, pairs, run_page
from loupe.view.board import Board, Row
from loupe.view.grid import Wanted
from loupe.view.run_index import RunIndex
from loupe.view.sample_page import address, sample_index
from loupe.view.shelf import Shelf
from loupe.web.answers import SHARED_FILES, static_files

JsonObject: TypeAlias = dict[str, Any]

_HERE = Path(__file__).parent
_REPORT = Path(report.__file__).parent / "static"
#: Everything that is served as it is; the look is the report's.
STATIC_FILES = (
    SHARED_FILES
    | {name: _REPORT / name for name in ("report.css", "match.css", "facts.css")}
    | static_files(_HERE / "static")
)
#: Published rows below each leaderboard of the first page.
_PUBLISHED = 4
_MATCH = ("overlay.js", "tables.js", "formulas.js", "match.js")


def sample_script() -> str:
    """The report's script for one sample, with what the file holds asked from the server."""
    of_report = [_REPORT / name for name in ("data.js", "text.js", "diff.js", "sample.js", *_MATCH, "facts.js")]
    files = [of_report[0], _HERE / "static" / "served.js", *of_report[1:], _HERE / "static" / "served_page.js"]
    return '(() => {\n"use strict";\n' + "\n".join(file.read_text(encoding="utf-8") for file in files) + "})();\n"


class Pages:
    """Renders."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._templates = page.environment(_HERE / "templates")
        self._templates.globals |= {
            "sample_address": lambda group, sample, _: f"/b/{group['slug']}/sample?{urlencode({'id': sample})}",
            "row_address": lambda group, place: f"/run/{group['runs'][place].key}",
            "version": __version__,
        }
        self.legend = page.legend()

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

    def board(self, board: Board) -> str:
        """Everything about one benchmark."""
        group = self._group(board)
        running = [self._live(board, run) for run in board.runs if run.state != "done"]
        return self._render("board.html", board, "", group=group, groups=[group], running=running, **_state(board))

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
        rows = grid.chosen_rows(board, wanted)
        at = next((place for place, row in enumerate(rows) if row.ident == ident), None)
        if at is None:
            rows = board.rows()
            at = next((place for place, row in enumerate(rows) if row.ident == ident), None)
        if at is None:
            return None
        kept = {name: value for name, value in query.items() if value and name not in ("id", "page")}
        rest = f"&{urlencode(kept)}" if kept else ""
        beside = [rows[place].ident if 0 <= place < len(rows) else None for place in (at - 1, at + 1)]
        compared = query.get("three") == "1" and len(wanted.runs) == 2
        links = {
            "payload": address(board, "payload", ident) + rest,
            "drawings": address(board, "drawings", ident) + rest,
            "thumbnail": f"{address(board, 'picture', ident)}&n=0&small=1",
            "whatIf": address(board, "what-if", ident) + rest,
            "listed": f"/b/{board.key}/{'compare' if compared else 'samples'}{'?' + urlencode(kept) if kept else ''}",
            "listedAs": "Compare" if compared else "Samples",
            "previous": address(board, "sample", beside[0]) + rest if beside[0] is not None else "",
            "next": address(board, "sample", beside[1]) + rest if beside[1] is not None else "",
            "place": at,
            "count": len(rows),
        }
        index = page.inline_json(sample_index(board, rows, at, wanted.runs, links))
        return self._render("sample_page.html", board, "sample", name=ident, index=Markup(index), compared=compared)

    def what_if(self, board: Board, run: RunIndex, ident: str, text: str, reference: str) -> str:
        """The page where an answer can be edited."""
        sample = board.samples().get(ident)
        row = next((row for row in board.rows() if row.ident == ident), None)
        assert row is not None
        links = {"picture": f"{address(board, 'picture', ident)}&n=0" if sample and sample.images else ""}
        rows = board.rows()
        index = sample_index(board, rows, rows.index(row), (), links)
        start = {"text": text, "reference": reference, "board": board.key, "sample": ident}
        return self._render(
            "what_if.html",
            board,
            "sample",
            name=ident,
            run=run,
            runs=list(zip(board.ordered(), [e.label for e in board.group().entrants], strict=True)),
            text=text,
            start=Markup(page.inline_json(start)),
            index=Markup(page.inline_json(index)),
            picture=links["picture"],
            back=address(board, "sample", ident),
            has_truth=sample is not None,
        )

    def compare(self, board: Board, query: JsonObject) -> str:
        """Two runs, sample by sample."""
        runs, names = board.ordered(), [entrant.label for entrant in board.group().entrants]
        keys = [run.key for run in runs]
        a = keys.index(query["a"]) if query.get("a") in keys else min(1, len(runs) - 1)
        b = keys.index(query["b"]) if query.get("b") in keys else 0
        measure, found = pairs.pairs_of(board, a, b) if a != b else (None, [])
        order = query.get("order", "") if query.get("order", "") in pairs.ORDERS else "losses"
        listed = pairs.in_order(found, order)
        pages = max(1, -(-len(listed) // pairs.PAGE))
        number = min(
            int(query["page"]) if query.get("page", "").isascii() and query.get("page", "").isdigit() else 1, pages
        )
        number = max(1, number)
        kept = {"a": keys[a], "b": keys[b], "order": order}
        inside = urlencode({"a": keys[a], "b": keys[b], "three": 1, "order": order})
        return self._render(
            "compare.html",
            board,
            "compare",
            runs=list(zip(runs, names, strict=True)),
            unverified=board.context()["unverified"],
            a=a,
            b=b,
            measure=measure,
            counts=pairs.counts(found),
            total=len(found),
            plot=pairs.scatter(found, measure) if measure else None,
            whole=pairs.whole(board, runs[a], runs[b]) if a != b else [],
            rows=listed[(number - 1) * pairs.PAGE : number * pairs.PAGE],
            shown=lambda value: format_value(value, measure.unit) if measure else "",
            gain=lambda value: f"{100 * value:+.2f}" if measure and measure.unit == "fraction" else f"{value:+.4g}",
            place=lambda ident: f"{address(board, 'sample', ident)}&{inside}",
            orders=pairs.ORDERS,
            order=order,
            number=number,
            pages=pages,
            turn=lambda to: f"/b/{board.key}/compare?{urlencode({**kept, 'page': to})}",
            **_state(board),
        )

    def _render(self, template: str, board: Board | None, here: str, **values: Any) -> str:
        parts = [("/", "Benchmarks", board is None)]
        if board is not None:
            root = f"/b/{board.key}"
            parts += [(root, "Leaderboard", here == ""), (f"{root}/slices", "Slices", here == "slices")]
            parts += [(f"{root}/samples", "Samples", here in ("samples", "sample"))]
            parts += [(f"{root}/compare", "Compare", here == "compare")] if len(board.runs) > 1 else []
            values |= {"title": self._shelf.look().title(board), "root": root}
            values["damaged"] = [(board.labels[run.key], run.problem) for run in board.runs if run.problem]
        return self._templates.get_template(template).render(parts=parts, **values)


def _state(board: Board) -> JsonObject:
    return {"follow": f"/state?b={board.key}", "stamp": board.stamp, "pages_note": board.pages_note}

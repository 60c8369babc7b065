"""Tables under review in a real browser: cells are merged, split and made headers, one undo for each step."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from loupe.benchmarks.folders.own.tables import read_table
from tests.support.served import wait_for
from tests.support.web.review_browser import opened, press
from tests.web.test_review_own import draft, go, make, samples

TABLE = (
    "<table><tr><td>Item</td><td>Price</td><td></td></tr><tr><td></td><td>net</td><td>x<sup>2</sup></td></tr></table>"
)

#: Any steps on any cell leave each place of the grid to one cell, and a source that says the same.
RANDOM_STEPS = """async (seed) => {
    const { cellAt, emptyTable, insert, readTable, remove, writeTable } = await import('/static/table_model.js');
    const { merge, NoMerge, split, switchHeader } = await import('/static/table_spans.js');
    const random = (below) => {
        seed = (seed * 1103515245 + 12345) % 2147483648;
        return Math.floor(seed / 65536) % below;
    };
    const start = () => readTable('<table><thead><tr><th>a<th>b<th>c</thead><tr><td>d<td>e</table>');
    const done = { merge: 0, refused: 0, split: 0 };
    const shape = ({ cells }) => cells.filter(({ absent, inner }) => !absent || inner)
        .map(({ row, col, rows, cols, tag, inner }) => [row, col, rows, cols, tag, inner].join()).sort().join(' ');
    for (let table = 0; table < 40; table += 1) {
        let model = table % 2 ? emptyTable() : start();
        for (let step = 0; step < 40; step += 1) {
            const row = random(model.rows.length), col = random(model.columns), cell = cellAt(model, row, col);
            const kind = random(7), what = ['row', 'column'][random(2)], at = what === 'row' ? row : col;
            if (kind < 3) {
                try { merge(model, cell, ['right', 'down'][random(2)]); done.merge += 1; }
                catch (error) { if (!(error instanceof NoMerge)) throw error; done.refused += 1; }
            } else if (kind === 3) done.split += split(model, cell);
            else if (kind === 4) { if (model.rows.length + model.columns < 12) insert(model, what, at, at); }
            else if (kind === 5) remove(model, what, at);
            else switchHeader(cell);
            const places = new Set();
            let covers = 0;
            for (const { row, col, rows, cols } of model.cells) {
                covers += rows * cols;
                for (let down = row; down < Math.min(row + rows, model.rows.length); down += 1) {
                    for (let across = col; across < Math.min(col + cols, model.columns); across += 1) {
                        places.add(`${down} ${across}`);
                    }
                }
            }
            const size = model.rows.length * model.columns;
            if (covers !== size || places.size !== size) return ['not each place once', kind, writeTable(model)];
            const again = readTable(writeTable(model));
            if (shape(again) !== shape(model)) return ['another', kind, writeTable(model), shape(again), shape(model)];
            if (step % 9 === 0) model = again;
        }
    }
    return done;
}"""


def reference(folder: Path) -> str:
    found = samples(folder)["grid"]["reference"]
    assert isinstance(found, str)
    return found


def test_cells_are_merged_split_and_made_headers_and_each_step_is_taken_back_alone(
    browser: Browser, tmp_path: Path
) -> None:
    make(tmp_path, "[benchmark]\n", draft("grid", "table", TABLE), drafts_of_tables())
    with opened(browser, tmp_path) as (_, page, _):
        go(page, "grid")
        done = page.evaluate(RANDOM_STEPS, 7)
        assert isinstance(done, dict) and min(done.values()) > 50, done
        check_steps(page, tmp_path)
        check_drafts(page)


def drafts_of_tables() -> str:
    """A sample with what three engines have: the same cells otherwise, other cells, and no table."""
    wide = TABLE.replace("<td>Price</td><td></td>", '<td colspan="2">Price</td>').replace("net", "the <b>net</b>")
    markdown = "| Item | Price | |\n|---|---|---|\n| | net | x2 |\n"
    texts = {"wide": wide, "markdown": markdown, "none": "No table, but some words that are long enough for a text."}
    truth = {"status": "draft", "engines": [*texts], "drafts": texts, "differs": ["reference"]}
    line = {"id": "drafts", "image": "a.png", "task": "table", "reference": TABLE, "truth": truth}
    return json.dumps(line) + "\n"


def check_drafts(page: Page) -> None:
    """What other engines have is a grid with the differing cells marked; without a table it is text."""
    go(page, "drafts")
    sections = page.locator(".draft")
    expect(sections).to_have_count(3)
    wide = sections.nth(0)
    expect(wide.locator(".other")).to_have_text(["Price", "the net"])
    expect(wide.locator("ins")).to_have_text("the ")
    expect(wide.locator(".note")).to_have_text("2 cells differ; 1 of the current cells is missing here.")
    expect(sections.nth(1).locator(".note")).to_have_text("The same cells, written differently.")
    expect(sections.nth(2).locator(".text")).to_contain_text("some words")
    page.get_by_label("Row 2, column 2").fill("the net")
    expect(wide.locator(".note")).to_have_text("1 cell differs; 1 of the current cells is missing here.")


def check_steps(page: Page, folder: Path) -> None:
    """With keys and with the toolbar; what was typed right before is a change of its own."""
    written = [TABLE]

    def now(old: str, new: str) -> None:
        wanted = written[-1].replace(old, new)
        assert wanted != written[-1]
        written.append(wanted)
        wait_for(lambda: reference(folder) == wanted, seconds=10)

    press(page, "e", "Alt+h")
    now("<td>Item</td>", "<th>Item</th>")
    press(page, "Alt+Shift+M")
    now(
        "<th>Item</th><td>Price</td><td></td></tr><tr><td></td>",
        '<th rowspan="2">Item</th><td>Price</td><td></td></tr><tr>',
    )
    press(page, "Alt+ArrowRight", "End")
    page.keyboard.insert_text("s")
    page.get_by_role("button", name="Merge with the cell to the right").click()
    written.append(written[-1].replace("Price", "Prices"))
    now("<td>Prices</td><td></td>", '<td colspan="2">Prices</td>')
    expect(page.get_by_label("Row 1, column 2")).to_be_focused()
    press(page, "Alt+Shift+M")
    both = '<td rowspan="2" colspan="2">Prices<br>net<br>x<sup>2</sup></td></tr><tr></tr>'
    now('<td colspan="2">Prices</td></tr><tr><td>net</td><td>x<sup>2</sup></td></tr>', both)
    assert read_table(reference(folder)) == {(0, 0): "Item", (0, 1): "Prices net x2"}
    press(page, "Alt+m")
    expect(page.locator("#toast")).to_have_text("There is no cell to the right.")
    press(page, "Alt+s")
    now(both, "<td>Prices<br>net<br>x<sup>2</sup></td><td></td></tr><tr><td></td><td></td></tr>")
    press(page, "Escape")
    for before in reversed(written[:-1]):
        press(page, "u")
        expect(page.locator("[name=reference]")).to_have_value(before)
        assert reference(folder) == before

// Cells that span several places of the grid, and header cells: what decides, beside the text, how alike two tables are.

import { cellAt } from "./table_model.js";

/** Why two cells cannot be one. */
export class NoMerge extends Error {}

/** Make one cell of this one and what lies right of it, or below: as much as makes a rectangle. Throws NoMerge. */
export function merge(model, cell, what) {
  const end = what === "right" ? cell.col + cell.cols : cell.row + cell.rows;
  if (end >= (what === "right" ? model.columns : model.rows.length)) throw new NoMerge(`There is no cell ${what === "right" ? "to the right" : "below"}.`);
  if (what === "down" && model.rows[end].group !== model.rows[cell.row].group) throw new NoMerge("A cell cannot extend from the table head into the body.");
  const joined = beside(model, cell, what, end), last = Math.max(...joined.map((each) => (what === "right" ? each.col + each.cols : each.row + each.rows)));
  const all = [cell, ...joined], filled = all.filter(({ inner }) => inner.trim());
  cell.inner = filled.map(({ inner }) => inner).join("<br>");
  cell.plain = all.every(({ plain }) => plain);
  cell.absent = false;
  if (what === "right") cell.cols = last - cell.col;
  else cell.rows = last - cell.row;
  model.cells = model.cells.filter((each) => !joined.includes(each));
}

/** The cells on that side, in reading order, up to the end of the largest; all of them must lie between the same lines. */
function beside(model, cell, what, end) {
  const [along, span, across, width] = what === "right" ? ["col", "cols", "row", "rows"] : ["row", "rows", "col", "cols"];
  const found = new Set(), at = (step, place) => (what === "right" ? cellAt(model, step, place) : cellAt(model, place, step));
  for (let place = end, last = end + 1; place < last; place += 1) {
    for (let step = cell[across]; step < cell[across] + cell[width]; step += 1) {
      const next = at(step, place);
      if (next[across] < cell[across] || next[across] + next[width] > cell[across] + cell[width]) {
        throw new NoMerge(`The cell ${what === "right" ? "to the right" : "below"} reaches further than this one; merge or split first.`);
      }
      found.add(next);
      last = Math.max(last, next[along] + next[span]);
    }
  }
  return [...found].sort((a, b) => a.row - b.row || a.col - b.col);
}

/** Make as many cells as there are places; the first keeps what stands in it. Whether there was more than one. */
export function split(model, cell) {
  const { row, col, rows, cols, tag } = cell;
  if (rows * cols === 1) return false;
  Object.assign(cell, { rows: 1, cols: 1 });
  for (let down = 0; down < rows; down += 1) for (let across = 0; across < cols; across += 1) {
    if (down + across) model.cells.push({ row: row + down, col: col + across, rows: 1, cols: 1, tag, attrs: "", inner: "", plain: true });
  }
  return true;
}

/** A header cell becomes an ordinary one, an ordinary one a header. */
export function switchHeader(cell) {
  cell.tag = cell.tag === "th" ? "td" : "th";
  cell.absent = false;
}

// Cells on the clipboard, as spreadsheets and pages put them there, into a grid: from one cell on, which grows if need be.

import { cellAt, insert, MOST_CELLS, MOST_COLUMNS, setText } from "./table_model.js";

/** The texts of cells by row; null where there is one text and no table. */
export function cellsOn(clipboard) {
  const text = clipboard.getData("text/plain");
  // Spreadsheets quote cells of more than one line, and give the same as a table, which needs no quotes.
  const table = new DOMParser().parseFromString(clipboard.getData("text/html"), "text/html").querySelector("table");
  if (table && (!text.includes("\t") || text.includes('"'))) {
    return [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
  }
  return text.includes("\t") ? text.replace(/\r\n?/g, "\n").replace(/\n$/, "").split("\n").map((line) => line.split("\t")) : null;
}

/** Put the texts in; false, and nothing is changed, where the grid would become too large. */
export function fillFrom(model, row, col, cells) {
  const rows = Math.max(model.rows.length, row + cells.length), columns = Math.max(model.columns, ...cells.map((line) => col + line.length));
  if (columns > MOST_COLUMNS || rows * columns > MOST_CELLS) return false;
  while (model.rows.length < rows) insert(model, "row", model.rows.length, model.rows.length - 1);
  while (model.columns < columns) insert(model, "column", model.columns, model.columns - 1);
  cells.forEach((line, down) => line.forEach((text, across) => {
    const cell = cellAt(model, row + down, col + across);
    // What a cell that spans several places covers has no text of its own.
    if (!cell || cell.row !== row + down || cell.col !== col + across) return;
    cell.plain = true;
    setText(cell, text);
  }));
  return true;
}

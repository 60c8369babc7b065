// The grid in which a table is edited, over the control that holds its source; what a grid cannot hold stays source.

import { toast } from "./notes.js";
import { cellAt, emptyTable, oneCell, inOrder, insert, readTable, remove, setText, textOf, TooComplex, writeTable } from "./table_model.js";
import { cellsOn, fillFrom } from "./table_paste.js";
import { merge, NoMerge, split, switchHeader } from "./table_spans.js";

const TOOLS = [
  ["Row", [["above", "Insert a row above (Alt Shift ↑)", () => put("row", 0)], ["below", "Insert a row below (Alt Shift ↓)", () => put("row", 1)],
    ["delete", "Delete the row (Alt Backspace)", () => take("row")]]],
  ["Column", [["before", "Insert a column before (Alt Shift ←)", () => put("column", 0)], ["after", "Insert a column after (Alt Shift →)", () => put("column", 1)],
    ["delete", "Delete the column (Alt Shift Backspace)", () => take("column")]]],
  ["Cell", [["merge right", "Merge with the cell to the right (Alt M)", () => join("right")], ["merge down", "Merge with the cell below (Alt Shift M)", () => join("down")],
    ["split", "Split into single cells (Alt S)", () => part()], ["header cell", "Header cell or ordinary cell (Alt H)", () => head()]]],
];
const LETTERS = { m: () => join("right"), M: () => join("down"), s: () => part(), h: () => head() };
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
let editor = null, source = null, model = null, written = null, wantsSource = false, at = { row: 0, col: 0 };

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Draw the grid anew if the source is another one than the grid's; called whenever the form changes. */
export function refreshTable(form) {
  const found = form.querySelector("#table-editor");
  if (found && found === editor && source.value === written) return;
  if (found !== editor) at = { row: 0, col: 0 };
  editor = found;
  if (editor) {
    source = editor.closest(".field").querySelector("[data-control]");
    source.onpaste = onPaste;
    draw();
  }
}

function draw() {
  let reason = "";
  written = source.value;
  try { model = readTable(source.value); } catch (error) {
    if (!(error instanceof TooComplex)) throw error;
    model = null;
    reason = error.message;
  }
  const isSource = !model || wantsSource;
  source.hidden = !isSource;
  const preview = editor.parentElement.querySelector("#rendered");
  preview.hidden = !isSource;
  if (!isSource) delete preview.dataset.drawn;
  editor.replaceChildren(toolbar(isSource, reason), ...(isSource ? [] : [grid()]));
}

function toolbar(isSource, reason) {
  const bar = make("div", { className: "table-tools" });
  if (!isSource) for (const [label, tools] of TOOLS) {
    const group = make("div", { className: "tool-group" }, make("span", { className: "note" }, label));
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", label);
    for (const [text, title, action] of tools) {
      const button = make("button", { type: "button", className: "link", title }, text);
      button.setAttribute("aria-label", title);
      button.addEventListener("click", action);
      group.append(button);
    }
    bar.append(group);
  }
  if (reason) bar.append(make("p", { className: "note no-grid" }, `${reason} Edit its source instead.`));
  bar.append(make("span", { className: "spring" }));
  if (!source.value.trim()) bar.append(tool("Begin a table", () => { model = emptyTable(); save(); }));
  else if (model) bar.append(tool(isSource ? "Grid" : "Source", () => { wantsSource = !wantsSource; draw(); source.dispatchEvent(new Event("input", { bubbles: true })); }));
  return bar;
}

const tool = (text, action) => {
  const button = make("button", { type: "button", className: "link" }, text);
  button.addEventListener("click", action);
  return button;
};

function grid() {
  const table = make("table", { className: "grid" }), body = make("tbody", {});
  model.rows.forEach((_, row) => {
    const line = make("tr", {});
    for (const cell of inOrder(model, row)) {
      const text = make("textarea", { rows: 1, value: textOf(cell), spellcheck: false, dir: "auto" });
      text.setAttribute("aria-label", `Row ${cell.row + 1}, column ${cell.col + 1}${cell.plain ? "" : ", as HTML"}`);
      text.classList.toggle("markup-source", !cell.plain);
      text.dataset.row = cell.row;
      text.dataset.col = cell.col;
      text.cell = cell;
      const box = make(cell.tag, { rowSpan: cell.rows, colSpan: cell.cols }, text);
      box.classList.toggle("absent", Boolean(cell.absent));
      line.append(box);
    }
    body.append(line);
  });
  table.append(body);
  table.addEventListener("input", (event) => {
    setText(event.target.cell, event.target.value);
    source.value = written = writeTable(model);
  });
  table.addEventListener("focusin", (event) => {
    at = { row: Number(event.target.dataset.row), col: Number(event.target.dataset.col) };
    event.target.entered = event.target.value;
  });
  table.addEventListener("keydown", onKey);
  table.addEventListener("paste", onPaste);
  return make("div", { className: "grid-scroll" }, table);
}

/** Cells go into cells; one text goes where it is typed. Into an empty field they bring the grid along. */
function onPaste(event) {
  const cells = cellsOn(event.clipboardData);
  if (!cells || (!model && source.value.trim())) return;
  event.preventDefault();
  const into = model || oneCell(), { row, col } = model ? at : { row: 0, col: 0 };
  if (!fillFrom(into, row, col, cells)) { toast("This is more than the grid can hold; nothing was pasted.", "bad"); return; }
  model = into;
  save(row, col);
}

function onKey(event) {
  if (event.isComposing) return;
  const text = event.target, step = STEPS[event.key];
  if (event.altKey && event.shiftKey && step) put(step[0] ? "row" : "column", step[0] + step[1] > 0 ? 1 : 0);
  else if (event.altKey && event.key === "Backspace") take(event.shiftKey ? "column" : "row");
  else if (event.altKey && step) go(...step);
  else if (letterOf(event)) LETTERS[letterOf(event)]();
  else if (event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.metaKey) go(1, 0);
  else if (event.key === "Escape") {
    if (text.value !== text.entered) { text.value = text.entered; text.dispatchEvent(new Event("input", { bubbles: true })); }
    text.blur();
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

/** The letter of a key with Alt, which types another sign on a Mac; a capital with Shift. */
function letterOf({ altKey, ctrlKey, metaKey, shiftKey, key, code }) {
  if (!altKey || ctrlKey || metaKey) return "";
  const letter = /^[a-z]$/i.test(key) ? key.toLowerCase() : code.replace(/^Key/, "").toLowerCase(), wanted = shiftKey ? letter.toUpperCase() : letter;
  return Object.hasOwn(LETTERS, wanted) ? wanted : "";
}

/** To the next cell in a direction, over the whole of the one that is left. */
function go(down, across) {
  const cell = cellAt(model, at.row, at.col);
  const next = cellAt(model, down > 0 ? cell.row + cell.rows : cell.row + down, across > 0 ? cell.col + cell.cols : cell.col + across);
  if (next) focus(next.row, next.col);
}

function focus(row, col) {
  const cell = cellAt(model, Math.min(row, model.rows.length - 1), Math.min(col, model.columns - 1));
  if (!cell) return;
  at = { row: cell.row, col: cell.col };
  const text = editor.querySelector(`[data-row="${cell.row}"][data-col="${cell.col}"]`);
  text?.focus();
  text?.select();
}

/** The cell at which one is; after a row or column is gone, the nearest. */
const here = () => cellAt(model, Math.min(at.row, model.rows.length - 1), Math.min(at.col, model.columns - 1));

function put(what, step) {
  const cell = here();
  const from = what === "row" ? cell.row : cell.col, last = from + (what === "row" ? cell.rows : cell.cols) - 1;
  const place = step ? last + 1 : from;
  insert(model, what, place, step ? last : from);
  save(what === "row" ? place : cell.row, what === "row" ? cell.col : place);
}

function take(what) {
  if (remove(model, what, what === "row" ? at.row : at.col)) save(at.row, at.col);
  else toast(`The last ${what} of a table cannot be deleted.`);
}

function join(what) {
  const cell = here();
  try { merge(model, cell, what); } catch (error) {
    if (!(error instanceof NoMerge)) throw error;
    toast(error.message);
    return;
  }
  save(cell.row, cell.col);
}

function part() {
  const cell = here();
  if (split(model, cell)) save(cell.row, cell.col);
  else toast("Only a cell that spans several rows or columns can be split.");
}

function head() {
  const cell = here();
  switchHeader(cell);
  save(cell.row, cell.col);
}

/** What was done to the grid is a change of its own, and what was typed before it another: each is taken back alone. */
function save(row = 0, col = 0) {
  if (source.value !== source.known) tell("step", { typed: true });
  source.value = written = writeTable(model);
  tell("input");
  tell("step", { typed: false });
  draw();
  focus(row, col);
}

const tell = (name, detail) => source.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));

// A table as cells on a grid, from its source and back. What is hostile stays text: the parser's document is inert.

export const MOST_CELLS = 1200, MOST_COLUMNS = 60;
const LONGEST = 400000;
const SECTIONS = ["THEAD", "TBODY", "TFOOT"];

/** Why a source is shown as a source and not as a grid. */
export class TooComplex extends Error {}

const escapeText = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const attributes = (element) => [...element.attributes].filter(({ name }) => name !== "rowspan" && name !== "colspan")
  .map(({ name, value }) => ` ${name}="${value.replace(/&/g, "&amp;").replace(/"/g, "&quot;")}"`).join("");
const newCell = (row, col, tag = "td") => ({ row, col, rows: 1, cols: 1, tag, attrs: "", inner: "", plain: true });

/** The table of a source. Throws TooComplex for what a grid cannot hold without loss. */
export function readTable(source) {
  const opened = source.match(/<table\b/gi)?.length || 0;
  if (source.length > LONGEST || (source.match(/<t[dh]\b/gi)?.length || 0) > MOST_CELLS) throw new TooComplex("The table is too large for the grid.");
  if (!opened) return readMarkdown(source);
  if (opened > 1) throw new TooComplex("There is more than one table, or one inside another.");
  const start = source.search(/<table\b/i), end = source.search(/<\/table\s*>/i);
  if (end < start) throw new TooComplex("The table is not closed.");
  const stop = source.indexOf(">", end) + 1, html = source.slice(start, stop);
  const { body } = new DOMParser().parseFromString(html, "text/html");
  const table = body.firstElementChild;
  if (body.childNodes.length !== 1 || table?.tagName !== "TABLE") throw new TooComplex("Some text is outside the cells.");
  const model = { prefix: source.slice(0, start), suffix: source.slice(stop), attrs: attributes(table), before: "", rows: [], cells: [], columns: 0,
    sections: /<t(head|body|foot)\b/i.test(html), lines: /<\/tr>\s*\n/i.test(html) };
  for (const child of table.children) {
    if (SECTIONS.includes(child.tagName)) readSection(model, child);
    else model.before += child.outerHTML;
  }
  return finished(model);
}

/** Rows of a section; cells take the first free place of their row, as in a browser, and spans end with the section. */
function readSection(model, section) {
  const first = model.rows.length, count = section.rows.length, taken = new Set();
  [...section.rows].forEach((element, place) => {
    const row = first + place;
    model.rows.push({ section: section.tagName.toLowerCase(), attrs: attributes(element), sectionAttrs: attributes(section), group: first });
    let col = 0;
    for (const cell of element.cells) {
      while (taken.has(`${row} ${col}`)) col += 1;
      if (cell.getAttribute("rowspan")?.trim() === "0") throw new TooComplex("A cell spans all further rows.");
      const rows = Math.min(cell.rowSpan, count - place), cols = cell.colSpan;
      if (col + cols > MOST_COLUMNS) throw new TooComplex(`There are more than ${MOST_COLUMNS} columns.`);
      for (let down = 0; down < rows; down += 1) for (let across = 0; across < cols; across += 1) {
        const key = `${row + down} ${col + across}`;
        if (taken.has(key)) throw new TooComplex("Cell spans overlap.");
        taken.add(key);
      }
      model.cells.push({ row, col, rows, cols, tag: cell.tagName.toLowerCase(), attrs: attributes(cell), inner: cell.innerHTML, plain: isPlain(cell) });
      col += cols;
    }
  });
}

const isPlain = (cell) => [...cell.children].every((child) => child.tagName === "BR" && !child.attributes.length) && !/<!--/.test(cell.innerHTML);

function readMarkdown(source) {
  const lines = source.split("\n");
  const isRule = (line) => line.includes("-") && split(line).every((cell) => /^:?-+:?$/.test(cell));
  const rule = lines.findIndex((line, place) => place > 0 && lines[place - 1].includes("|") && isRule(line) && !isRule(lines[place - 1]));
  if (rule < 0) throw new TooComplex(source.trim() ? "No table can be read from this." : "");
  let stop = rule + 1;
  while (stop < lines.length && lines[stop].includes("|")) stop += 1;
  const header = split(lines[rule - 1]), width = Math.max(header.length, split(lines[rule]).length);
  const rows = [header, ...lines.slice(rule + 1, stop).map(split)].map((row) => [...row, ...Array(Math.max(0, width - row.length)).fill("")].slice(0, width));
  const model = { prefix: joined(lines.slice(0, rule - 1), "\n"), suffix: stop < lines.length ? `\n${lines.slice(stop).join("\n")}` : "", attrs: "", before: "", rows: [], cells: [],
    columns: 0, sections: false, lines: true };
  rows.forEach((cells, row) => {
    model.rows.push({ section: "tbody", attrs: "", sectionAttrs: "", group: 0 });
    cells.forEach((text, col) => model.cells.push({ ...newCell(row, col, row ? "td" : "th"), inner: escapeText(text).replace(/&lt;br\s*\/?&gt;/gi, "<br>") }));
  });
  if (model.cells.length > MOST_CELLS || model.cells.some((cell) => cell.col >= MOST_COLUMNS)) throw new TooComplex("The table is too large for the grid.");
  return finished(model);
}

const joined = (lines, end) => (lines.length ? lines.join("\n") + end : "");

/** The cells of a row, as Python reads them (table_answers/spellings.py): only a pipe without a backslash parts. */
function split(line) {
  const cells = [""];
  for (const [part] of line.trim().replace(/^\|/, "").matchAll(/\\.|[^\\|]+|\||\\$/gu)) {
    if (part === "|") cells.push("");
    else cells[cells.length - 1] += part === "\\|" ? "|" : part;
  }
  if (cells.length > 1 && !cells.at(-1).trim()) cells.pop();
  return cells.map((cell) => cell.trim());
}

/** A table of two rows and columns, to begin with. */
export const emptyTable = () => readTable("<table>\n<tr><td></td><td></td></tr>\n<tr><td></td><td></td></tr>\n</table>");

export const oneCell = () => readTable("<table>\n<tr><td></td></tr>\n</table>");

/** Rows that are too short get cells, which are written only when something stands in them. */
function finished(model) {
  model.columns = Math.max(1, ...model.cells.map((cell) => cell.col + cell.cols));
  const all = covered(model);
  if (!model.rows.length) throw new TooComplex("The table has no rows.");
  if (model.rows.length * model.columns > 4 * MOST_CELLS) throw new TooComplex("The table is too large for the grid.");
  for (let row = 0; row < model.rows.length; row += 1) for (let col = 0; col < model.columns; col += 1) {
    if (!all.has(`${row} ${col}`)) model.cells.push({ ...newCell(row, col), absent: true });
  }
  return model;
}

function covered(model) {
  const all = new Map();
  for (const cell of model.cells) for (let down = 0; down < cell.rows; down += 1) for (let across = 0; across < cell.cols; across += 1) all.set(`${cell.row + down} ${cell.col + across}`, cell);
  return all;
}

export const cellAt = (model, row, col) => covered(model).get(`${row} ${col}`);
export const inOrder = (model, row) => model.cells.filter((cell) => cell.row === row).sort((a, b) => a.col - b.col);

/** The text of a cell as it is edited: line breaks as such; a cell with other markup as its HTML. */
export function textOf(cell) {
  if (!cell.plain) return cell.inner;
  const { body } = new DOMParser().parseFromString(cell.inner.replace(/<br\s*\/?>/gi, "\n"), "text/html");
  return body.textContent;
}

export function setText(cell, text) {
  cell.inner = cell.plain ? escapeText(text).replace(/\n/g, "<br>") : text;
}

/** The source of the table. */
export function writeTable(model) {
  const end = model.lines ? "\n" : "", parts = [`<table${model.attrs}>`, ...(model.before ? [model.before] : [])];
  model.rows.forEach((row, place) => {
    const cells = inOrder(model, place);
    while (cells.length && cells.at(-1).absent && !cells.at(-1).inner) cells.pop();
    const isFirst = place === 0 || model.rows[place - 1].group !== row.group;
    const isLast = place === model.rows.length - 1 || model.rows[place + 1].group !== row.group;
    const written = cells.map(({ tag, attrs, rows, cols, inner }) => `<${tag}${attrs}${rows > 1 ? ` rowspan="${rows}"` : ""}${cols > 1 ? ` colspan="${cols}"` : ""}>${inner}</${tag}>`);
    const opening = model.sections && isFirst ? `<${row.section}${row.sectionAttrs}>` : "", closing = model.sections && isLast ? `</${row.section}>` : "";
    parts.push(`${opening}<tr${row.attrs}>${written.join("")}</tr>${closing}`);
  });
  return `${model.prefix}${parts.join(end)}${end}</table>${model.suffix}`;
}

/** Names of what runs along a row ("row", "rows") or a column. */
const ALONG = { row: ["row", "rows", "col", "cols"], column: ["col", "cols", "row", "rows"] };

/** Put a row or column in at `at`; like the one at `beside`. Cells that span over the place grow. */
export function insert(model, what, at, beside) {
  const [place, span, across, acrossSpan] = ALONG[what];
  const all = covered(model), grown = new Set();
  const tags = new Map([...all].map(([key, cell]) => [key, cell.tag]));
  for (const cell of model.cells) {
    if (cell[place] >= at) cell[place] += 1;
    else if (cell[place] + cell[span] > at) { cell[span] += 1; for (let step = 0; step < cell[acrossSpan]; step += 1) grown.add(cell[across] + step); }
  }
  const count = what === "row" ? model.columns : model.rows.length;
  for (let step = 0; step < count; step += 1) {
    if (grown.has(step)) continue;
    const key = what === "row" ? `${beside} ${step}` : `${step} ${beside}`;
    model.cells.push(what === "row" ? newCell(at, step, tags.get(key)) : newCell(step, at, tags.get(key)));
  }
  if (what === "row") model.rows.splice(at, 0, { ...model.rows[beside], attrs: "" });
  else { model.columns += 1; model.before = model.before.replace(/<colgroup[^]*?<\/colgroup>/gi, ""); }
}

/** Take a row or column away; cells that begin there and go on keep their text. Whether there was one to spare. */
export function remove(model, what, at) {
  const [place, span] = ALONG[what];
  if ((what === "row" ? model.rows.length : model.columns) < 2) return false;
  model.cells = model.cells.filter((cell) => cell[place] !== at || cell[span] > 1);
  for (const cell of model.cells) {
    if (cell[place] > at) cell[place] -= 1;
    else if (cell[place] + cell[span] > at) cell[span] -= 1;
  }
  if (what === "row") model.rows.splice(at, 1);
  else { model.columns -= 1; model.before = model.before.replace(/<colgroup[^]*?<\/colgroup>/gi, ""); }
  return true;
}

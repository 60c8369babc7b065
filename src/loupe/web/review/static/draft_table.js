// The table that another engine has, as a grid beside the one that stands: what differs by place, as cells are scored.

import { inOrder, readTable, TooComplex } from "./table_model.js";

/* global difference, visibleText */
/** So many cells are compared word by word; in the others the whole text is marked. */
const MOST_COMPARED = 200;
const LONGEST = 2000;
/** Drafts do not change; the table that stands does, with every key. */
const known = new Map(), MOST_KNOWN = 40;

/** The draft with its differing cells marked; null where one of the two is no single plain table. */
export function draftGrid(draft, standing) {
  if (known.size > MOST_KNOWN) known.clear();
  if (!known.has(draft)) known.set(draft, read(draft));
  const found = known.get(draft), now = standing.trim() ? read(standing) : { rows: [], cells: new Map() };
  if (!found || !now) return null;
  let compared = 0, other = 0;
  const body = document.createElement("tbody");
  for (const row of found.rows) {
    const line = document.createElement("tr");
    for (const cell of row) {
      const box = Object.assign(document.createElement(cell.tag), { rowSpan: cell.rows, colSpan: cell.cols, dir: "auto" });
      const there = now.cells.get(cell.place), why = unlike(cell, there);
      if (why) {
        other += 1;
        box.className = "other";
        box.title = why;
      }
      const isShort = compared < MOST_COMPARED && cell.text.length + (there?.text.length ?? 0) < LONGEST;
      if (!why || cell.text === there?.text) box.append(cell.text);
      else if (isShort) { compared += 1; box.append(...marked(cell.text, there?.text ?? "")); }
      else { const all = document.createElement("ins"); all.append(...visibleText(cell.text, true)); box.append(all); }
      line.append(box);
    }
    body.append(line);
  }
  const table = document.createElement("table"), scroll = Object.assign(document.createElement("div"), { className: "draft-scroll" });
  table.className = "draft-grid";
  table.append(body);
  scroll.append(table);
  const lacks = [...now.cells.keys()].filter((place) => !found.cells.has(place)).length;
  const says = [other ? `${other} ${other === 1 ? "cell differs" : "cells differ"}` : "", lacks ? `${lacks} of the current cells ${lacks === 1 ? "is" : "are"} missing here` : ""].filter(Boolean);
  scroll.append(Object.assign(document.createElement("p"), { className: "note", textContent: says.length ? `${says.join("; ")}.` : "The same cells, written differently." }));
  return scroll;
}

/** Rows of cells, and cells by their place; null for what the grid of the editor does not take either. */
function read(source) {
  try {
    const model = readTable(source), cells = new Map();
    const rows = model.rows.map((_, row) => inOrder(model, row).filter(({ absent }) => !absent).map((cell) => {
      const one = { text: textOf(cell.inner), place: `${cell.row} ${cell.col}`, rows: cell.rows, cols: cell.cols, tag: cell.tag };
      cells.set(one.place, one);
      return one;
    }));
    return { rows, cells };
  } catch (error) {
    if (!(error instanceof TooComplex)) throw error;
    return null;
  }
}

/** The text of a cell as it is scored: without markup, breaks and runs of blanks as one blank. */
function textOf(inner) {
  const spaced = inner.replace(/<\/?(?:br|p|div|li|[uod]l|d[td]|h[1-6r]|pre|blockquote|center|section)\b[^<>]*>/gi, " ");
  const text = /[<&]/.test(spaced) ? new DOMParser().parseFromString(spaced, "text/html").body.textContent : spaced;
  return text.trim().replace(/\s+/g, " ");
}

function unlike(cell, there) {
  if (!there) return "the current table has no cell starting here";
  if (cell.text !== there.text) return there.text ? `current value: ${there.text}` : "currently empty";
  return cell.rows !== there.rows || cell.cols !== there.cols ? `spans ${there.rows} × ${there.cols} in the current table, ${cell.rows} × ${cell.cols}` : "";
}

const marked = (text, now) => difference(text, now, "words", 20).segments
  .flatMap(([kind, part]) => {
    if (kind === "same") return visibleText(part);
    const mark = document.createElement(kind === "missing" ? "del" : "ins");
    mark.append(...visibleText(part, true));
    return [mark];
  });

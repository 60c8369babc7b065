// Tables of ground truth and answer side by side, with the cells that a best mapping has to change.

const CHANGES = {
  missing: "missing in the answer", extra: "only in the answer", text: "other text", span: "other span", tag: "other kind of cell",
};

function tableGrids(grids) {
  const all = make("div", { class: "grids" });
  if (grids.problem) all.append(notice(grids.problem));
  const texts = new Map();
  for (const [, row] of grids.reference?.rows || []) for (const [text, , , , change] of row) if (change >= 0) texts.set(change, text);
  const sides = make("div", { class: "grid-sides" });
  if (grids.reference) sides.append(gridSide("Ground truth", grids.reference, null));
  if (grids.prediction) sides.append(gridSide("Answer", grids.prediction, texts));
  all.append(sides);
  const kinds = new Set([grids.reference, grids.prediction].flatMap((side) => (side ? side.rows.flatMap(([row, cells]) => [row, ...cells.map((cell) => cell[3])]) : [])).filter(Boolean));
  const legend = [...kinds].map((kind) => make("span", { class: "grid-key" }, make("span", { class: `grid-swatch cell-${kind}` }), CHANGES[kind] || kind));
  if (legend.length || grids.notes.length) {
    all.append(make("p", { class: "grid-legend" }, ...legend, ...grids.notes.map((note) => make("span", {}, note))));
  }
  return all;
}

function gridSide(title, grid, references) {
  const body = make("tbody", {}, ...grid.rows.map(([kind, row]) => make("tr", { class: kind && `row-${kind}`, title: kind ? `this row is ${CHANGES[kind]}` : null }, ...row.map((cell) => gridCell(cell, references)))));
  const side = make("figure", { class: "grid-side" }, make("figcaption", {}, title), make("div", { class: "table-scroll" }, make("table", { class: "grid" }, body)));
  if (grid.hidden) side.append(notice(`${grid.hidden.toLocaleString("en")} more cells are not shown.`));
  return side;
}

/** A cell; in the answer, with what its text has too much or too little. */
function gridCell([text, columns, rows, kind, change], references) {
  const cell = make("td", { class: kind && `cell-${kind}`, colspan: columns > 1 ? columns : null, rowspan: rows > 1 ? rows : null,
    title: CHANGES[kind] || null, "data-change": change >= 0 ? change : null });
  if (kind === "text" && references?.has(change)) {
    for (const [part, piece] of difference(text, references.get(change), "characters").segments) {
      cell.append(...(part === "same" ? visibleText(piece) : [make(part === "missing" ? "del" : "ins", {}, ...visibleText(piece, true))]));
    }
  } else {
    cell.append(...visibleText(text));
  }
  return cell;
}

/** The same change on both sides lights up together. */
function lightUp(grids, change) {
  for (const cell of grids.querySelectorAll("[data-change]")) cell.classList.toggle("lit", change !== null && cell.dataset.change === change);
}

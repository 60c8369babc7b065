// The fields of a document as one table: what the truth has, and what each engine gave, right or wrong by which rule.

function fieldTable(payload, sample) {
  const labels = sample.group.engines;
  const named = new Map();
  payload.answers.forEach((answer, place) => {
    for (const [name, wanted, given, value, rule] of answer?.fields ?? []) {
      if (!named.has(name)) named.set(name, { wanted, cells: [] });
      named.get(name).cells[place] = { given, value, rule };
    }
  });
  const head = make("tr", {}, ...["field", "ground truth", ...labels].map((label) => make("th", { scope: "col" }, make("bdi", {}, label))));
  const rows = [...named].map(([name, { wanted, cells }]) => make("tr", {},
    make("th", { scope: "row" }, make("bdi", {}, ...name.split(/(?<=[_./-])/).flatMap((part) => [...visibleText(part), make("wbr")]))),
    make("td", { "data-of": "ground truth" }, fieldText(wanted)),
    ...labels.map((label, place) => fieldCell(cells[place], wanted, label, payload.answers[place]))));
  return make("div", { class: "table-scroll" }, make("table", { class: "fields stack" }, make("thead", {}, head), make("tbody", {}, ...rows)));
}

function fieldText(text) {
  return make("span", { class: "field-text", dir: "auto" }, ...(text === "" ? [make("span", { class: "nothing" }, "nothing")] : visibleText(text)));
}

function fieldCell(cell, wanted, label, answer) {
  const right = cell?.value === 1 && !answer.failed;
  const rule = !answer || answer.failed ? "no answer" : cell ? cell.rule : "not asked";
  const mark = make("span", { class: `verdict-mark ${right ? "right" : "wrong"}`, role: "img", "aria-label": right ? "right" : "wrong" }, right ? "✓" : "✗");
  // What earned full marks is no mistake, however it is written; only what cost something is struck out.
  const given = !cell || right || !cell.given || !wanted ? fieldText(cell?.given ?? "") : fieldDifference(cell.given, wanted);
  return make("td", { "data-of": label }, make("span", { class: "field-given" }, mark, given, make("span", { class: "field-rule" }, rule)));
}

/** Where less than half is the same, as between dates written otherwise, marks would say nothing. */
function fieldDifference(given, wanted) {
  const { segments, counts } = difference(given, wanted, "characters", 50);
  if (2 * counts.same < Math.max(given.length, wanted.length)) return fieldText(given);
  const parts = segments.map(([kind, text]) =>
    (kind === "same" ? make("span", {}, ...visibleText(text)) : make(kind === "missing" ? "del" : "ins", {}, ...visibleText(text, true))));
  return make("span", { class: "field-text", dir: "auto" }, ...parts);
}

fieldView = { table: fieldTable };

// The tests of one answer: in plain words, and why those that failed did. Beside the page, engine by engine.

const facts = { engine: 0, kind: "", category: "", failures: true };
const UNMARKED = { "": "", missing: "not in the answer's equation", moved: "present, with other neighbours", extra: "not looked for" };

/** Draws the tests of the chosen engine beside the page; `wanted` is the number of the one to go to. */
function drawFacts(wanted = null) {
  const { payload, sample } = view;
  if (!payload.answers[facts.engine]?.tests) facts.engine = payload.answers.findIndex((answer) => answer?.tests);
  const answer = payload.answers[facts.engine];
  const all = answer.tests.list;
  if (wanted !== null) Object.assign(facts, { kind: "", category: "", failures: facts.failures && !all[wanted]?.passed });
  for (const name of ["kind", "category"]) if (!all.some((fact) => fact[name] === facts[name])) facts[name] = "";
  const shown = all.map((fact, number) => [fact, number]).filter(([fact]) => (!facts.failures || !fact.passed)
    && (!facts.kind || fact.kind === facts.kind) && (!facts.category || fact.category === facts.category));
  const list = make("ol", { class: "facts" }, ...shown.map(([fact, number]) => factRow(fact, number)));
  const failed = answer.failed ? [failureBox(OUTCOMES[answer.outcome], answer.error || "No message.", "Scored as an empty answer.")] : [];
  const none = shown.length ? [] : [notice(all.every((fact) => fact.passed) ? "All tests of this page passed." : "No test of this page matches these filters.")];
  const more = answer.tests.hidden ? [notice(`${answer.tests.hidden.toLocaleString("en")} more are in scores.jsonl.`)] : [];
  const box = make("div", { class: "fact-view rows" }, ...failed, ...factsHead(payload, sample, answer.tests), list, ...none, ...more);
  document.querySelector("#sample .panes").replaceChildren(box);
  if (wanted !== null) {
    const row = box.querySelector(`[data-fact="${wanted}"]`);
    row?.scrollIntoView({ block: "center" });
    row?.focus({ preventScroll: true });
  }
}

function factsHead(payload, sample, found) {
  const failures = found.list.filter((fact) => !fact.passed).length, total = found.list.length + found.hidden;
  const others = payload.answers.map((answer, place) => [answer?.tests, sample.group.engines[place], place])
    .filter(([tests, , place]) => tests && place !== facts.engine).map(([tests, label]) => `${label}: ${failedOf(tests)}`);
  const line = make("p", { class: "match-line" }, [failures ? `${failures} of ${total} tests failed` : `all ${total} tests passed`, ...others].join(" · "));
  const controls = make("div", { class: "fact-controls" });
  if (payload.answers.filter((answer) => answer?.tests).length > 1) {
    controls.append(factChoice("Engine", "engine", sample.group.engines.map((label, place) => [place, label]).filter(([place]) => payload.answers[place]?.tests)));
  }
  for (const [label, name] of [["Type", "kind"], ["Category", "category"]]) {
    const values = [...new Set(found.list.map((fact) => fact[name]))].sort(byName.compare);
    if (values.length > 1) controls.append(factChoice(label, name, [["", "all"], ...values.map((value) => [value, value.replaceAll("_", " ")])]));
  }
  const only = make("button", { type: "button", class: "quiet", "aria-pressed": String(facts.failures) }, "Only failures");
  only.addEventListener("click", () => { facts.failures = !facts.failures; drawFacts(); document.querySelector("#sample .fact-controls > .quiet").focus(); });
  controls.append(only);
  return [line, controls];
}

function failedOf(tests) {
  const failures = tests.list.filter((fact) => !fact.passed).length, total = tests.list.length + tests.hidden;
  return failures ? `${failures} of ${total} failed` : `all ${total} passed`;
}

function factChoice(label, name, entries) {
  const select = make("select", { "aria-label": label }, ...entries.map(([value, text]) => make("option", { value, selected: String(value) === String(facts[name]) }, text)));
  select.addEventListener("change", () => {
    facts[name] = name === "engine" ? Number(select.value) : select.value;
    drawFacts();
    document.querySelector(`#sample .fact-controls select[aria-label="${label}"]`)?.focus();
  });
  return make("label", {}, make("span", {}, label), select);
}

function factRow(fact, number) {
  const head = make("div", { class: "fact-head" },
    make("span", { class: `verdict ${fact.passed ? "pass" : "fail"}` }, fact.passed ? "passed" : "failed"),
    make("span", { class: "pill" }, fact.kind), make("span", { class: "muted" }, fact.category === fact.kind ? "" : fact.category.replaceAll("_", " ")),
    make("span", { class: "spring" }), make("code", { class: "fact-id" }, ...visibleText(fact.id)));
  const row = make("li", { class: `fact ${fact.passed ? "pass" : "fail"}`, tabindex: 0, "data-fact": number }, head, factWords(fact.words));
  if (fact.passed) return row;
  row.append(make("p", { class: "fact-why" }, ...visibleText(fact.why)), ...fact.comparisons.map(comparison));
  if (fact.table) row.append(parsedTable(fact.table));
  if (fact.equations.length) row.append(equationPair(fact.equations));
  return row;
}

const QUOTES = { text: "quoted", latex: "quoted latex" };

function factWords(words) {
  return make("p", { class: "fact-words", dir: "auto" }, ...words.flatMap(([role, text]) =>
    (role ? [make(role === "latex" ? "code" : "q", { class: QUOTES[role] }, ...visibleText(text))] : visibleText(text))));
}

/** The text that was found, with what it has too much or too little, in its surroundings. */
function comparison({ label, wanted, found, before, after, similarity, enough }) {
  const caption = make("figcaption", {}, label);
  const percent = (value) => `${(100 * value).toFixed(1)} %`;
  if (similarity !== null) caption.append(make("span", { class: "alike" }, `${percent(similarity)} alike`, enough === null ? "" : `, ${percent(Math.max(0, enough))} is the limit`));
  const body = make("div", { class: "text found", dir: "auto" });
  if (before) body.append(make("span", { class: "around" }, "…", ...visibleText(before)));
  if (found === "") body.append(make("span", { class: "nothing" }, "nothing"));
  else if (wanted === "" || wanted === found) body.append(make("mark", {}, ...visibleText(found)));
  else {
    const parts = difference(found, wanted, "characters", 100).segments.map(([kind, text]) =>
      (kind === "same" ? make("span", { class: "alike-part" }, ...visibleText(text)) : make(kind === "missing" ? "del" : "ins", {}, ...visibleText(text, true))));
    body.append(make("span", { class: "hit" }, ...parts));
  }
  if (after) body.append(make("span", { class: "around" }, ...visibleText(after), "…"));
  return make("figure", { class: "comparison" }, caption, body);
}

/** The cells in the places where the parser put them, holes and overlaps included. */
function parsedTable({ title, cells, hidden }) {
  const grid = make("div", { class: "parsed", role: "table", "aria-label": title });
  for (const [row, column, lastRow, lastColumn, text, heading, mark] of cells) {
    const cell = make("div", { class: `parsed-cell${heading ? " heading" : ""}${mark ? ` ${mark}` : ""}`, role: "cell", title: mark === "cell" ? "the cell in question" : mark ? "what it was compared with" : null }, ...visibleText(text));
    cell.style.gridRow = `${row + 1} / ${lastRow + 2}`;
    cell.style.gridColumn = `${column + 1} / ${lastColumn + 2}`;
    grid.append(cell);
  }
  const keys = [make("span", { class: "grid-key" }, make("span", { class: "parsed-swatch cell" }), "the cell in question")];
  if (cells.some((cell) => cell[6] === "related")) keys.push(make("span", { class: "grid-key" }, make("span", { class: "parsed-swatch related" }), "what the failed relation checks"));
  if (cells.some((cell) => cell[5])) keys.push(make("span", { class: "grid-key" }, make("b", {}, "bold"), "headings"));
  if (hidden) {
    const whole = make("button", { type: "button", class: "quiet" }, "whole answer");
    whole.addEventListener("click", () => { view.mode = view.chosen = "rendered"; drawPanes(); });
    keys.push(make("span", {}, `${hidden.toLocaleString("en")} more cells are further away: `, whole));
  }
  return make("figure", { class: "comparison" }, make("figcaption", {}, title), make("div", { class: "parsed-scroll" }, grid), make("p", { class: "grid-legend" }, ...keys));
}

function equationPair(equations) {
  const sides = equations.map(({ label, latex, drawn, problem }, place) => {
    const figure = make("figure", { class: "comparison" }, make("figcaption", {}, label));
    if (drawn) figure.append(make("div", { class: "formula-scroll" }, formulaPicture(drawn, latex)));
    if (problem) figure.append(notice(problem));
    const source = make("code", { class: "formula-source" }, ...visibleText(latex));
    // What is looked for stands in the words of the test already.
    if (!drawn) figure.append(source);
    else if (place) figure.append(make("details", {}, make("summary", {}, "LaTeX"), source));
    return figure;
  });
  const marks = new Set(equations.flatMap(({ drawn }) => (drawn ? drawn.glyphs.map((glyph) => glyph[6]) : [])));
  const keys = Object.entries(UNMARKED).filter(([mark]) => mark && marks.has(mark)).map(([mark, text]) =>
    make("span", { class: "grid-key" }, make("span", { class: `glyph-swatch ${mark}` }), text));
  return make("div", { class: "equation-pair" }, ...sides, ...(keys.length ? [make("p", { class: "grid-legend" }, ...keys)] : []));
}

/** A formula as SVG elements: every glyph where it stood when the equations were compared. */
function formulaPicture({ size: [width, height], glyphs, rules, shapes }, latex) {
  const svg = vector("svg", { class: "formula", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": latex.slice(0, 300) });
  for (const [path, matrix, [x, y, across, along], stroke] of shapes) {
    const inner = vector("svg", { x, y, width: across, height: along, viewBox: `${x} ${y} ${across} ${along}` });
    inner.append(vector("path", { d: path, transform: `matrix(${matrix.join(" ")})`, class: stroke ? "stroke" : "" }));
    svg.append(inner);
  }
  for (const [x, y, across, along] of rules) svg.append(vector("rect", { x, y, width: across, height: Math.max(along, 0.8) }));
  for (const [text, x, baseline, across, size, style, mark] of glyphs) {
    const glyph = vector("text", { x, y: baseline, "font-size": size, textLength: Math.max(across, 0.1), lengthAdjust: "spacingAndGlyphs",
      class: `${mark} ${style & 1 ? "italic" : ""} ${style & 2 ? "bold" : ""}`.trim() });
    glyph.append(text);
    if (mark) glyph.append(titled(UNMARKED[mark]));
    svg.append(glyph);
  }
  return svg;
}

function vector(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function titled(text) {
  const title = vector("title", {});
  title.append(text);
  return title;
}

factView = {
  draw: drawFacts,
  goTo: (engine, number) => { facts.engine = engine; drawFacts(number); },
};

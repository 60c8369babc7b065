// All tests of all pages as one list: filtered by engine, category, type and document; each leads to its page.

const FACT_PORTION = 60;
const factList = { group: 0, loaded: new Map(), shown: [], made: 0 };
const factControl = (name) => document.getElementById(`fact-${name}`);
const FACT_COLUMNS = ["sample", "engine", "number", "passed", "kind", "category", "document", "id", "words", "why"];

async function factsOfGroup(place) {
  if (!factList.loaded.has(place)) {
    const found = await unpacked(textOf(`facts-${place}`));
    found.rows = found.rows.map((row) => Object.fromEntries(FACT_COLUMNS.map((name, column) => [name, row[column]])));
    factList.loaded.set(place, found);
  }
  return factList.loaded.get(place);
}

async function chooseFactGroup(place) {
  factList.group = place;
  const { rows } = await factsOfGroup(place);
  const group = index.groups[place];
  const fill = (name, all, entries) => {
    options(factControl(name), [["", all], ...entries]);
    factControl(name).closest("label").hidden = entries.length < 2;
  };
  const values = (name) => [...new Set(rows.map((row) => row[name]))].sort(byName.compare);
  fill("engine", "All engines", group.engines.map((label, number) => [String(number), label]));
  const several = group.engines.length > 1;
  fill("together", "Any", several ? [["all", "failed by all"], ["differ", "engines differ"]] : []);
  fill("category", "All categories", values("category").map((value) => [value, value.replaceAll("_", " ")]));
  fill("kind", "All types", values("kind").map((value) => [value, value]));
  fill("document", "All documents", values("document").map((value) => [value, value]));
  await updateFacts();
}

/** Which rows are of a test that all engines failed ("all"), or that some failed and some passed ("differ"). */
function factsTogether(rows, hidden, wanted) {
  const key = (row) => `${row.sample} ${row.id}`, failed = new Map(), passed = new Set();
  for (const row of rows) {
    if (row.passed) passed.add(key(row)); else failed.set(key(row), (failed.get(key(row)) || 0) + 1);
  }
  const engines = index.groups[factList.group].engines.length;
  // Tests that are not listed have passed.
  const fits = { all: (of) => failed.get(of) === engines,
    differ: (of) => failed.has(of) && (passed.has(of) || (hidden > 0 && failed.get(of) < engines)) };
  return wanted ? rows.filter((row) => fits[wanted](key(row))) : rows;
}

async function updateFacts() {
  const { rows: all, hidden } = await factsOfGroup(factList.group);
  const rows = factsTogether(all, hidden, factControl("together").value);
  const words = factControl("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const [engine, category, kind, place] = ["engine", "category", "kind", "document"].map((name) => factControl(name).value);
  const chosen = rows.filter((row) => (!engine || row.engine === Number(engine)) && (!category || row.category === category)
    && (!kind || row.kind === kind) && (!place || row.document === place)
    && words.every((word) => `${row.words} ${row.why} ${row.document} ${row.id}`.toLowerCase().includes(word)));
  const failures = chosen.filter((row) => !row.passed);
  factList.shown = factControl("failures").checked ? failures : chosen;
  factList.made = 0;
  const number = (count) => count.toLocaleString("en");
  const more = hidden ? `; ${number(hidden)} tests that passed are not listed` : "";
  factControl("count").textContent = `${number(failures.length)} of ${number(chosen.length)} tests failed${more}`;
  factControl("rows").replaceChildren();
  factControl("none").hidden = factList.shown.length > 0;
  makeFactRows();
}

function makeFactRows() {
  const part = factList.shown.slice(factList.made, factList.made + FACT_PORTION);
  factControl("rows").append(...part.map(factListRow));
  factList.made += part.length;
  factControl("more").hidden = factList.made >= factList.shown.length;
}

function factListRow(row) {
  const group = index.groups[factList.group], sample = group.samples[row.sample];
  const several = group.engines.length > 1;
  const link = make("a", { class: "fact-link", href: `${addressOf(sample)}&f=${row.engine}.${row.number}` },
    make("span", { class: `verdict ${row.passed ? "pass" : "fail"}` }, row.passed ? "passed" : "failed"),
    make("span", { class: "fact-link-text" }, make("span", { class: "fact-link-words", dir: "auto" }, ...visibleText(row.words)),
      row.why ? make("span", { class: "fact-link-why" }, ...visibleText(row.why)) : ""),
    make("span", { class: "fact-link-where" }, make("bdi", {}, row.document),
      make("span", {}, [several ? group.engines[row.engine] : "", row.kind, row.category === row.kind ? "" : row.category.replaceAll("_", " ")].filter(Boolean).join(" · "))));
  return make("li", {}, link);
}

function startFacts() {
  const groups = index.groups.map((group, place) => [place, group.title]).filter(([place]) => textOf(`facts-${place}`));
  if (!groups.length) return;
  document.getElementById("tests").hidden = false;
  options(factControl("group"), groups.map(([place, title]) => [String(place), title]));
  factControl("group").closest("label").hidden = groups.length < 2;
  factControl("group").addEventListener("change", () => chooseFactGroup(Number(factControl("group").value)));
  for (const name of ["engine", "together", "category", "kind", "document", "failures"]) factControl(name).addEventListener("change", updateFacts);
  factControl("search").addEventListener("input", updateFacts);
  factControl("search").form.addEventListener("submit", (event) => event.preventDefault());
  factControl("more").addEventListener("click", makeFactRows);
  chooseFactGroup(groups[0][0]);
}

startFacts();

// The grid of samples: filtered, sorted, coloured by score. Cards are made in portions, as they come into sight.

const PORTION = 60;
const grid = { group: index.groups[0], shown: [], made: 0 };
const control = (name) => document.getElementById(`grid-${name}`);

function engineGoods(sample) {
  const chosen = control("engine").value, goods = allGoods(sample);
  return chosen === "" ? goods : [goods[Number(chosen)]];
}

/** What the sample is coloured and sorted by: the mean over the chosen engines; null if none has a score. */
function overall(sample) {
  const goods = engineGoods(sample).filter((good) => good !== null);
  return goods.length ? goods.reduce((sum, good) => sum + good, 0) / goods.length : null;
}

function spread(sample) {
  const goods = sample.engines.map((engine) => engine.good).filter((good) => good !== null);
  return goods.length ? Math.max(...goods) - Math.min(...goods) : -1;
}

/** Filters that look at all engines of a sample together: no points for any of them; or more for some than for others. */
const TOGETHER = {
  failed_by_all: ["all engines failed: no points", (goods) => goods.every((good) => good === 0)],
  differ: ["engines differ", (goods) => {
    const known = goods.filter((good) => good !== null);
    return known.length > 0 && Math.max(...known) - Math.min(...known) > 1e-9;
  }],
};

/** What every engine is worth on the sample, whichever is chosen; a failed answer is worth nothing. */
function allGoods(sample) {
  return sample.engines.map((engine) => (FAILED.has(engine.outcome) && engine.outcome !== "scorer" ? 0 : engine.good));
}

/** What the sample costs the chosen engines, on average. */
function costOf(sample) {
  const chosen = control("engine").value;
  const engines = chosen === "" ? sample.engines : [sample.engines[Number(chosen)]];
  return engines.reduce((sum, engine) => sum + engine.cost, 0) / engines.length;
}

const ORDERS = {
  order: (a, b) => a.order - b.order,
  worst: (a, b) => (overall(a) ?? 2) - (overall(b) ?? 2) || a.order - b.order,
  cost: (a, b) => costOf(b) - costOf(a) || a.order - b.order,
  best: (a, b) => (overall(b) ?? -1) - (overall(a) ?? -1) || a.order - b.order,
  spread: (a, b) => spread(b) - spread(a) || a.order - b.order,
  name: (a, b) => byName.compare(a.id, b.id),
};

function matches(sample, words) {
  const tag = control("tag").value, outcome = control("outcome").value, chosen = control("engine").value;
  if (tag && sample.tags[tag.slice(0, tag.indexOf("="))] !== tag.slice(tag.indexOf("=") + 1)) return false;
  const engines = chosen === "" ? sample.engines : [sample.engines[Number(chosen)]];
  if (outcome === "failed" && !engines.some((engine) => FAILED.has(engine.outcome))) return false;
  if (TOGETHER[outcome] && !TOGETHER[outcome][1](allGoods(sample))) return false;
  if (outcome && outcome !== "failed" && !TOGETHER[outcome] && !engines.some((engine) => engine.outcome === outcome)) return false;
  const haystack = `${sample.id} ${Object.values(sample.tags).join(" ")}`.toLowerCase();
  return words.every((word) => haystack.includes(word));
}

function updateGrid() {
  const words = control("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  grid.shown = grid.group.samples.filter((sample) => matches(sample, words)).sort(ORDERS[control("sort").value]);
  grid.made = 0;
  control("cards").replaceChildren();
  const all = grid.group.samples.length.toLocaleString("en");
  const some = grid.shown.length.toLocaleString("en");
  control("count").textContent = some === all ? `${all} samples` : `${some} of ${all} samples`;
  control("none").hidden = grid.shown.length > 0;
  makeCards(PORTION);
}

function makeCards(count) {
  const part = grid.shown.slice(grid.made, grid.made + count);
  control("cards").append(...part.map(makeCard));
  grid.made += part.length;
  control("more").hidden = grid.made >= grid.shown.length;
}

function makeCard(sample) {
  const card = fromTemplate("card-template");
  const good = overall(sample);
  card.href = addressOf(sample);
  card.classList.add(good === null ? "q-none" : `q${stepOf(good)}`);
  const source = thumbnailOf(sample);
  const picture = card.querySelector("img");
  if (source) picture.src = source; else picture.replaceWith(make("span", { class: "no-picture" }, "no image"));
  card.querySelector(".card-name").append(make("bdi", {}, sample.id));
  card.title = sample.id;
  card.querySelector(".card-scores").append(...cardScores(sample));
  return card;
}

function cardScores(sample) {
  const labels = sample.group.engines;
  const compact = labels.length > 4;
  const scores = sample.engines.map((engine, place) => {
    const failed = FAILED.has(engine.outcome);
    const text = failed || NOT_READ.has(engine.outcome) ? OUTCOMES[engine.outcome] : formatValue(engine.value, engine.measure);
    const step = failed ? "q-failed" : engine.good === null ? "q-none" : `q${stepOf(engine.good)}`;
    if (compact) return make("span", { class: `swatch ${step}`, title: `${labels[place]}: ${text}` });
    const mark = MARKS[engine.outcome] ? make("span", { class: "note" }, MARKS[engine.outcome]) : "";
    return make("span", { class: "card-score" }, make("span", { class: `swatch ${step}` }),
      make("bdi", { class: "card-engine" }, labels[place]), mark, make("span", { class: "card-value" }, text));
  });
  const good = overall(sample);
  return compact ? [make("span", { class: "swatches" }, ...scores),
    make("span", { class: "card-value" }, good === null ? "–" : (100 * good).toFixed(1))] : scores;
}

/** Makes enough cards that this sample's is there, and returns it. */
function cardOf(sample) {
  const place = grid.shown.indexOf(sample);
  if (place < 0) return null;
  if (place >= grid.made) makeCards(place - grid.made + PORTION);
  return control("cards").children[place];
}

function options(select, entries) {
  select.replaceChildren(...entries.map(([value, text]) => make("option", { value }, text)));
}

function chooseGroup(group) {
  grid.group = group;
  control("group").value = String(index.groups.indexOf(group));
  const several = group.engines.length > 1;
  options(control("engine"), [["", several ? "Mean of engines" : group.engines[0]],
    ...(several ? group.engines.map((label, place) => [String(place), label]) : [])]);
  control("engine").closest("label").hidden = !several;
  control("sort").querySelector("[value=spread]").hidden = !several;
  if (!several && control("sort").value === "spread") control("sort").value = "order";
  const found = new Set(group.samples.flatMap((sample) => sample.engines.map((engine) => engine.outcome)));
  const classes = Object.keys(OUTCOMES).filter((name) => found.has(name));
  const failed = classes.some((name) => FAILED.has(name)) ? [["failed", "failed (any)"]] : [];
  const together = several ? Object.entries(TOGETHER).map(([name, [text]]) => [name, text]) : [];
  options(control("outcome"), [["", "All answers"], ...failed, ...together, ...classes.map((name) => [name, OUTCOMES[name]])]);
  fillTags(group);
  control("cards").dataset.shape = group.shape;
  control("cards").classList.toggle("many", group.samples.length > 150);
  updateGrid();
}

function fillTags(group) {
  const tags = new Map();
  for (const sample of group.samples) {
    for (const [tag, value] of Object.entries(sample.tags)) {
      if (!tags.has(tag)) tags.set(tag, new Set());
      tags.get(tag).add(value);
    }
  }
  const useful = [...tags].filter(([, values]) => values.size > 1 && values.size <= 60);
  options(control("tag"), [["", "All slices"]]);
  for (const [tag, values] of useful) {
    const entries = [...values].sort(byName.compare).map((value) => make("option", { value: `${tag}=${value}` }, value));
    control("tag").append(make("optgroup", { label: tag }, ...entries));
  }
  control("tag").closest("label").hidden = useful.length === 0;
}

function startGrid() {
  options(control("group"), index.groups.map((group, place) => [String(place), group.title]));
  control("group").closest("label").hidden = index.groups.length < 2;
  control("group").addEventListener("change", () => chooseGroup(index.groups[Number(control("group").value)]));
  for (const name of ["engine", "sort", "outcome", "tag"]) control(name).addEventListener("change", updateGrid);
  control("filter").addEventListener("input", updateGrid);
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) makeCards(PORTION);
  }, { rootMargin: "1200px" }).observe(control("more"));
  control("more").addEventListener("click", () => makeCards(PORTION));
  window.addEventListener("beforeprint", () => makeCards(240));
  chooseGroup(index.groups[0]);
}

// The index of samples, with goodness from 0 to 1; elements of the page. Where the rest comes from: stored.js or served.js.

const index = JSON.parse(document.getElementById("index").textContent);

/** Lower ends of the seven colour steps, as in leaderboard.py. */
const STEPS = index.steps;
const FAILED = new Set(["refused", "unfinished", "timeout", "error", "rejected", "missing", "scorer"]);
const OUTCOMES = {
  ok: "answered", empty: "empty answer", truncated: "cut off", repeated: "repetition loop", timeout: "timed out",
  refused: "refused", unfinished: "cut off before the answer", error: "error", rejected: "rejected", missing: "no answer", scorer: "scoring failed",
  blank: "correctly empty", waiting: "not read", unasked: "not asked in this run",
};

/** Samples that a run did not come to, or was not asked for: no failures. */
const NOT_READ = new Set(["waiting", "unasked"]);

const byName = new Intl.Collator(undefined, { numeric: true });

/** What stands beside a score that is there, but not of a whole answer. */
const MARKS = { empty: "empty", truncated: "cut off", repeated: "loop" };

/** Samples with their numbers and, for each engine, outcome, value, and goodness from 0 to 1 (null: no value). */
function prepare() {
  let number = 0;
  for (const group of index.groups) {
    const measures = Object.fromEntries(group.measures.map((measure) => [measure.name, measure]));
    const largest = { ...group.largest };
    for (const sample of group.samples) {
      for (const [, name, value] of sample.engines) {
        if (value !== null) largest[name] = Math.max(largest[name] || 0, Math.abs(value));
      }
    }
    group.samples = group.samples.map((sample, order) => ({
      ...sample,
      group,
      order,
      number: number++,
      engines: sample.engines.map(([outcome, name, value, cost]) => ({
        outcome, value, cost, measure: measures[name], good: goodness(value, measures[name], largest[name]),
      })),
    }));
  }
}

function goodness(value, measure, largest) {
  if (value === null || !measure) return null;
  const share = measure.unit === "fraction" || largest <= 1 ? value : value / largest;
  return Math.min(1, Math.max(0, measure.higher ? share : 1 - share));
}

function stepOf(good) {
  let step = 0;
  while (step + 1 < STEPS.length && good >= STEPS[step + 1]) step++;
  return step;
}

function formatValue(value, measure) {
  if (value === null || !measure) return "–";
  if (measure.unit === "fraction") return (100 * value).toFixed(1);
  return String(Number(value.toPrecision(4)));
}

/** The value of gzipped JSON in base64. */
async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

/** A new element: attributes by name, children as elements or text. Text never becomes markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}

function fromTemplate(id) {
  return document.getElementById(id).content.firstElementChild.cloneNode(true);
}

prepare();

// What engines have drafted, beside the truth: where they differ from it, and how to take one of them.

import { draftGrid } from "./draft_table.js";
import * as form from "./form.js";

/* global difference, visibleText */
const box = document.getElementById("form");
/** A difference of longer texts takes too long for every key. */
const LONGEST = 20000;
let entry = null, timer = 0;

const flat = (text) => text.replace(/\s+/g, " ").trim();
const value = (name) => form.valueOf(name) ?? "";

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export function show(shown) {
  entry = shown;
  draw();
}

function draw() {
  if (!entry?.drafts.length) return;
  const isWhole = box.querySelectorAll("[data-takes]").length === 1 && box.querySelector("[data-takes=reference]");
  for (const place of box.querySelectorAll("[data-takes]")) {
    const name = place.dataset.takes;
    place.replaceChildren(...(isWhole && !isShort(name) ? texts(name) : chips(name)));
  }
  for (const button of box.querySelectorAll("[data-take-all]")) {
    const { values } = entry.drafts[button.dataset.takeAll];
    const others = values ? Object.keys(values).filter((name) => flat(values[name]) !== flat(value(name))) : [];
    const isTaken = Boolean(values) && !others.length;
    button.setAttribute("aria-pressed", String(isTaken));
    const note = button.querySelector(".agrees");
    if (note) note.textContent = isTaken ? "same as now" : isWhole ? "differs" : `${others.length} differ`;
  }
}

const isShort = (name) => entry.drafts.every(({ values }) => !values || (values[name] ?? "").length <= 60);

const isTable = (name) => box.querySelector(`[data-control=table][name="${CSS.escape(name)}"]`) !== null;

/** Short values: a button for each value that is not the one that stands. */
function chips(name) {
  const found = new Map();
  entry.drafts.forEach(({ engine, values }, place) => {
    if (!values) return;
    const text = values[name] ?? "";
    if (!found.has(text)) found.set(text, { place, engines: [] });
    found.get(text).engines.push(engine);
  });
  if ([...found.keys()].every((text) => flat(text) === flat(value(name)))) return [];
  return [...found].map(([text, { place, engines }]) => {
    const button = make("button", { type: "button", className: "chip" },
      make("bdi", { className: "chip-value" }, ...(text ? visibleText(text, true) : ["nothing"])), make("bdi", { className: "chip-engine" }, engines.join(", ")));
    button.dataset.take = place;
    button.dataset.name = name;
    button.title = `Take this value${text ? "" : ": the field stays empty"} (Alt ${place + 1} in the field)`;
    button.classList.toggle("blank", !text);
    button.setAttribute("aria-pressed", String(flat(text) === flat(value(name))));
    return button;
  });
}

/** Long texts: what each engine has, with what differs from the text that stands. */
function texts(name) {
  return entry.drafts.map(({ engine, values }, place) => {
    if (!values) return make("p", { className: "muted" }, make("bdi", {}, engine), " has no draft: it failed.");
    const text = values[name] ?? "", now = value(name);
    if (flat(text) === flat(now)) return make("p", { className: "muted same" }, make("bdi", {}, engine), " has the same.");
    const button = make("button", { type: "button", className: "quiet" }, `Take it${place < 9 ? " " : ""}`, ...(place < 9 ? [make("kbd", {}, String(place + 1))] : []));
    button.dataset.take = place;
    const head = make("h3", {}, make("bdi", {}, engine), button), grid = isTable(name) ? draftGrid(text, now) : null;
    if (grid) return make("section", { className: "draft" }, head, grid);
    const body = make("div", { className: "text diff", dir: "auto" });
    if (text.length + now.length > LONGEST) body.append(text.slice(0, LONGEST), ...(text.length > LONGEST ? [" …"] : []));
    else for (const [kind, part] of difference(text, now, "words", 60).segments) body.append(...(kind === "same" ? visibleText(part) : [make(kind === "missing" ? "del" : "ins", {}, ...visibleText(part, true))]));
    return make("section", { className: "draft" }, head, body);
  });
}

/** Put what an engine has into the form; whether there was anything to put. */
export function take(from, place, name) {
  const values = from.drafts[place]?.values;
  if (!values) return false;
  for (const [each, text] of Object.entries(values)) if (name === null || name === each) form.put(each, text);
  draw();
  return true;
}

export function startDrafts(onTake) {
  box.addEventListener("click", (event) => {
    const all = event.target.closest("[data-take-all]"), one = event.target.closest("[data-take]");
    if (all) onTake(Number(all.dataset.takeAll));
    else if (one) onTake(Number(one.dataset.take), one.dataset.name ?? null);
  });
  box.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(draw, 150); });
}

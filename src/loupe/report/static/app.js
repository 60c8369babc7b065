// Routes, keys, theme. #s=ID is the page of a sample; everything else is a place on the overview.

const overview = document.getElementById("overview");
const samplePage = document.getElementById("sample");
const help = document.getElementById("help");
const root = document.documentElement;
let leftAt = 0;

function sampleInHash() {
  const parts = new URLSearchParams(location.hash.slice(1).replace(/\+/g, "%2B"));
  if (!parts.has("s")) return undefined;
  const named = index.groups.find((candidate) => candidate.key === parts.get("b"));
  for (const group of named ? [named] : index.groups) {
    const found = group.samples.find((sample) => sample.id === parts.get("s"));
    if (found) return found;
  }
  return null;
}

/** Engine and number of the test that an address leads to. */
function factInHash() {
  const found = /^(\d+)\.(\d+)$/.exec(new URLSearchParams(location.hash.slice(1)).get("f") || "");
  return found && [Number(found[1]), Number(found[2])];
}

async function route() {
  const sample = sampleInHash();
  const before = view.sample;
  if (sample) {
    if (!overview.hidden) leftAt = window.scrollY;
    if (sample.group !== grid.group) chooseGroup(sample.group);
    overview.hidden = true;
    samplePage.hidden = false;
    await openSample(sample, factInHash());
    if (before !== sample && !factInHash()) window.scrollTo(0, 0);
    return;
  }
  view.sample = null;
  matchView?.hide();
  samplePage.hidden = true;
  samplePage.replaceChildren();
  overview.hidden = false;
  document.title = root.dataset.title;
  if (sample === null) {
    control("count").textContent = `No sample here is called ${new URLSearchParams(location.hash.slice(1)).get("s")}.`;
    history.replaceState(null, "", "#samples");
  }
  if (before) returnTo(before);
  else if (location.hash.length > 1) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

/** Back in the grid: where one was, with the card of the sample that was open last in sight and focused. */
function returnTo(sample) {
  const anchor = document.getElementById(location.hash.slice(1));
  if (anchor && anchor.id !== "samples") { anchor.scrollIntoView(); return; }
  window.scrollTo(0, leftAt);
  const card = cardOf(sample);
  if (card) { card.focus({ preventScroll: true }); card.scrollIntoView({ block: "nearest" }); }
}

function move(step) {
  if (view.sample) {
    const next = grid.shown[grid.shown.indexOf(view.sample) + step];
    if (next) location.replace(addressOf(next));
    return;
  }
  const cards = control("cards").children;
  const at = [...cards].indexOf(document.activeElement);
  const target = at < 0 ? 0 : Math.min(grid.shown.length - 1, Math.max(0, at + step));
  const card = grid.shown[target] && cardOf(grid.shown[target]);
  if (card) { card.focus(); card.scrollIntoView({ block: "nearest" }); }
}

function toGrid() {
  if (location.hash === "#samples") document.getElementById("samples").scrollIntoView();
  location.hash = "#samples";
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  g: toGrid,
  "/": () => { if (view.sample) toGrid(); setTimeout(() => { control("filter").scrollIntoView({ block: "center" }); control("filter").focus(); }, 0); },
  "?": () => help.showModal(),
  ...SAMPLE_KEYS,
  t: () => switchTheme(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "Escape") {
    if (typing) typing.blur();
    else if (view.sample) toGrid();
    return;
  }
  if (view.sample) stepThroughRows(event);
  if (typing || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");

function storedTheme(value) {
  try {
    if (value) localStorage.setItem("loupe-theme", value);
    return localStorage.getItem("loupe-theme");
  } catch {
    return value;  // Storage is closed to file: pages in some browsers; the choice then lasts as long as the page.
  }
}

function applyTheme(name) {
  root.dataset.theme = name || (dark.matches ? "dark" : "light");
}

function switchTheme() {
  const name = root.dataset.theme === "dark" ? "light" : "dark";
  storedTheme(name);
  applyTheme(name);
}

function start() {
  applyTheme(storedTheme());
  dark.addEventListener("change", () => applyTheme(storedTheme()));
  document.getElementById("theme").addEventListener("click", switchTheme);
  document.getElementById("help-open").addEventListener("click", () => help.showModal());
  for (const dialog of document.querySelectorAll("dialog")) dialog.addEventListener("click", () => dialog.close());
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", route);
  if (index.groups.length) startGrid();
  route();
  root.dataset.ready = "true";
}

start();

// What every page of the viewer does: theme, keys, filters without a button, and following the files.

import { startTheme, switchTheme } from "./theme.js";
import { get, Refused } from "./server.js";
import { trouble } from "./notes.js";

const POLL = 2000;
const root = document.documentElement;
const help = document.getElementById("help");
let timer = 0, showing = 0;

/** Puts the live parts of the page at `address` in place of those here. What has the focus stays where it is. */
async function show(address) {
  const mine = ++showing;
  const answer = await fetch(address, { credentials: "same-origin", cache: "no-store" });
  if (!answer.ok) throw new Refused(answer.status, {});
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (mine !== showing) return;
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
    // A form in which somebody is choosing is left alone.
    if (!next || part.isEqualNode(next) || (part.id === "filters" && part.contains(document.activeElement))) continue;
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const open = [...part.querySelectorAll("details")].map((each) => each.open);
    part.replaceWith(document.adoptNode(next));
    next.querySelectorAll("details").forEach((each, place) => { if (place < open.length) each.open = open[place]; });
    if (part.id === "filters") startFilters(next);
    if (focused) next.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }
  root.dataset.stamp = fresh.documentElement.dataset.stamp;
}

/** What this page shows was deleted or moved; the rest is there. */
function gone() {
  if (document.querySelector("#trouble a")) return;
  trouble("What this page shows no longer exists; this is its last state. ");
  const home = document.createElement("a");
  home.href = "/";
  home.textContent = "Benchmarks";
  document.getElementById("trouble").append(home);
}

async function follow() {
  clearTimeout(timer);
  try {
    if (!document.hidden) {
      const { stamp } = await get(root.dataset.state);
      if (stamp !== root.dataset.stamp) await show(location.href);
    }
    trouble("");
  } catch (error) {
    if (error instanceof Refused && error.status === 404) gone();
    else trouble("Loupe does not answer: this page may be out of date. Start loupe view again and open the address that it prints.");
  }
  timer = setTimeout(follow, POLL);
}

/** A filter acts as soon as it is changed; the address says what is shown. */
function startFilters(form) {
  const send = async () => {
    const words = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    const address = `${form.getAttribute("action")}?${words}`;
    history.replaceState(null, "", address);
    await show(address).catch((error) => trouble(error.message));
  };
  let pause = 0;
  form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
  form.addEventListener("change", send);
  form.addEventListener("input", (event) => {
    if (event.target.type !== "search") return;
    clearTimeout(pause);
    pause = setTimeout(send, 200);
  });
  // What was chosen before this script was there, or is brought back by the browser, counts too.
  if ([...form.elements].some(isChanged)) send();
}

function isChanged(control) {
  if (control.tagName === "INPUT") return control.value !== control.defaultValue;
  if (control.tagName !== "SELECT") return false;
  const first = [...control.options].findIndex((option) => option.defaultSelected);
  return control.selectedIndex !== Math.max(0, first);
}

/** Next and previous among cards, and pages of the list. */
function move(step) {
  const cards = [...document.querySelectorAll(".card, .duel-list th a")];
  if (!cards.length) return;
  const at = cards.indexOf(document.activeElement);
  const card = cards[at < 0 ? 0 : Math.min(cards.length - 1, Math.max(0, at + step))];
  card.focus();
  card.scrollIntoView({ block: "nearest" });
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  "/": () => document.querySelector("#filters input[type=search]")?.focus(),
  t: switchTheme,
  "?": () => help.showModal(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "Escape" && typing) typing.blur();
  // The page of a sample has keys of its own.
  if (typing || !Object.hasOwn(KEYS, event.key) || (document.getElementById("sample") && "jk".includes(event.key))) return;
  event.preventDefault();
  KEYS[event.key]();
}

startTheme();
document.getElementById("help-open").addEventListener("click", () => help.showModal());
for (const dialog of document.querySelectorAll("dialog")) dialog.addEventListener("click", () => dialog.close());
document.addEventListener("keydown", onKey);
const filters = document.getElementById("filters");
if (filters) startFilters(filters);
if (root.dataset.state) {
  timer = setTimeout(follow, POLL);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) follow(); });
}
root.dataset.ready = "true";
document.querySelector(".bar [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// The review in a browser: which key and which button does what, and what is there to begin with.

import * as list from "./list.js";
import * as viewer from "./viewer.js";
import * as form from "./form.js";
import * as drafts from "./drafts.js";
import { desk, lockButtons, markInList, settle, showState, whyLocked } from "./desk.js";
import { change, changeOf, flush, isSaving, saveSoon, startSaving } from "./saving.js";
import { move, nextGroup, nextOpen, openRow } from "./opening.js";
import { decide, differences, digit, take, undo } from "./decisions.js";
import { conflict, refresh } from "./others.js";
import { isNarrow, startKeys } from "./keys.js";
import { startTheme, switchTheme } from "./theme.js";
import { startWatching } from "./watch.js";

const root = document.documentElement;
const byId = (name) => document.getElementById(name);

function toFilter(name) {
  root.dataset.list = "open";
  byId("filters").elements[name].focus();
}

function switchList() {
  const isShown = root.dataset.list ? root.dataset.list === "open" : !isNarrow();
  root.dataset.list = isShown ? "closed" : "open";
}

/** From the first key on, though the button that has the focus comes last. */
function showKeys() {
  byId("help").showModal();
  byId("help").scrollTop = 0;
}

const KEYS = {
  a: () => decide("verified"),
  [root.dataset.refuseKey]: () => decide("rejected"),
  c: () => decide("unreviewed"),
  e: form.focusFirst,
  u: undo,
  j: () => move(1), ArrowDown: () => move(1),
  k: () => move(-1), ArrowUp: () => move(-1),
  n: () => nextOpen(1),
  p: () => nextOpen(-1),
  d: nextGroup,
  "/": () => toFilter("q"),
  f: () => toFilter("status"),
  "+": viewer.zoomIn, "=": viewer.zoomIn,
  "-": viewer.zoomOut, "−": viewer.zoomOut,
  0: () => viewer.fit("page"),
  w: () => viewer.fit("width"),
  m: viewer.switchMarks,
  o: viewer.turn,
  ",": () => viewer.turnLeaf(-1),
  ".": () => viewer.turnLeaf(1),
  z: viewer.closeUp,
  l: switchList,
  t: switchTheme,
  "[": () => differences(-1),
  "]": () => differences(1),
  "?": showKeys,
};

for (let number = 1; number < 10; number += 1) KEYS[number] = () => digit(number);

/** Onto the clipboard; where the browser lets nobody, it is marked to be copied by hand. */
async function copy(line, button) {
  try {
    await navigator.clipboard.writeText(line.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(line);
  }
}

function startButtons() {
  byId("help-open").addEventListener("click", showKeys);
  byId("undo").addEventListener("click", undo);
  byId("list-open").addEventListener("click", switchList);
  byId("verify").addEventListener("click", () => decide("verified"));
  byId("reject").addEventListener("click", () => decide("rejected"));
  byId("skip").addEventListener("click", () => nextOpen(1));
  byId("copy-next")?.addEventListener("click", ({ target }) => copy(byId("next-command"), target));
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => { if (event.target === dialog || event.target.closest("[data-close]")) dialog.close(); });
  }
}

function startList() {
  list.filterFromAddress();
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("input", () => {
    list.applyFilter(desk.entry?.number);
    if (desk.entry) history.replaceState(null, "", list.address(desk.entry.number));
  });
  byId("filter-clear").addEventListener("click", () => { list.clearFilter(); list.applyFilter(desk.entry?.number); });
  byId("list").addEventListener("click", (event) => {
    const found = event.target.closest(".row");
    if (!found || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (isNarrow()) root.dataset.list = "closed";
    openRow(found);
  });
}

function startEntry() {
  byId("form").addEventListener("change", ({ target }) => { change(null, { going: target.tagName === "TEXTAREA" ? form.going() : "" }); });
  byId("form").addEventListener("input", saveSoon);
  byId("form").addEventListener("step", ({ target, detail }) => { changeOf(target, detail.typed ? form.going() : ""); });
  drafts.startDrafts(take);
  settle({ restored: form.startForm(desk.entry) });
}

function start() {
  startTheme();
  startSaving(conflict);
  showState(desk.state);
  viewer.startViewer(lockButtons);
  startButtons();
  startList();
  startKeys({ keys: KEYS, save: flush, undo, take, first: () => openRow(list.neighbour(0, 1)), isOpen: () => desk.entry !== null });
  addEventListener("beforeunload", (event) => { if (form.isDirty() || isSaving()) event.preventDefault(); });
  if (desk.entry) startEntry();
  else {
    markInList();
    byId("actions").hidden = true;
  }
  startWatching(async ({ revision, locked }, isBack) => {
    if (whyLocked({ locked }) !== desk.state.locked) showState({ ...desk.state, locked });
    if ((isBack || revision > desk.state.revision) && !isSaving() && byId("conflict").hidden) await refresh();
  });
  root.dataset.ready = "true";
}

start();

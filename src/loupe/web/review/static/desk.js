// What lies on the desk: the entry that is open, with its page, its form and its place in the list; how the review stands.

import { get, mayWrite } from "./server.js";
import * as list from "./list.js";
import * as viewer from "./viewer.js";
import * as form from "./form.js";
import * as drafts from "./drafts.js";
import { endComplaint, showCounts, toast } from "./say.js";
import { showLocalTimes } from "./times.js";

const root = document.documentElement;
const byId = (name) => document.getElementById(name);

/** `shown` grows whenever another form is put there; `asked`: of this entry the server wants to hear the wish twice;
 * `busy`: a decision or an undo is under way, and what comes meanwhile was not meant for what it leads to. */
export const desk = {
  entry: byId("entry") ? JSON.parse(byId("entry").textContent) : null,
  state: JSON.parse(byId("state").textContent),
  shown: 0, asked: 0, busy: false,
};
let picture = null;

/** Why nothing can be saved, by the server or by how this page was opened. */
export const whyLocked = ({ locked }) => locked || (mayWrite() ? "" : "this page is read-only; open the address that loupe review printed");

export function showState(data) {
  const { revision, counts, undo } = data;
  desk.state = { revision, counts, undo, locked: whyLocked(data) };
  showCounts(desk.state);
  lockButtons();
}

export function lockButtons() {
  const locked = !desk.entry || desk.entry.broken || Boolean(desk.state.locked);
  // Nobody can say that a page is right before it is there.
  byId("verify").disabled = locked || viewer.isDrawing();
  byId("reject").disabled = locked;
}

function pressButtons() {
  byId("verify").setAttribute("aria-pressed", String(desk.entry.status === "verified"));
  byId("reject").setAttribute("aria-pressed", String(desk.entry.status === "rejected"));
}

export function markInList() {
  list.applyFilter(desk.entry?.number);
  if (desk.entry) list.markCurrent(desk.entry.number);
}

/** Put an entry there, with its form as the server has it. */
export function show(next, { keepFocus = false } = {}) {
  desk.shown += 1;
  desk.entry = next;
  byId("head").innerHTML = next.head;
  settle({ restored: form.showForm(next.form, next) });
  if (!keepFocus && document.activeElement?.closest("#form")) document.activeElement.blur();
}

/** All around the form that stands: page, drafts, list, address. */
export function settle({ restored }) {
  const { entry } = desk;
  desk.asked = 0;
  showLocalTimes(byId("head"));
  byId("conflict").hidden = true;
  endComplaint();
  root.toggleAttribute("data-wide", Boolean(byId("form").querySelector(".as-prose, .as-markdown, .as-table")));
  viewer.showPage(entry, findMarks);
  drafts.show(entry);
  history.replaceState(null, "", list.address(entry.number));
  document.title = `${entry.id || `line ${entry.number}`} · ${document.querySelector(".file").textContent}`;
  markInList();
  lockButtons();
  pressButtons();
  byId("detail").scrollTop = 0;
  root.dataset.line = entry.number;
  if (restored) toast(`Your unsaved edit is back: ${form.waysOut()}.`);
  viewer.prepare(list.neighbour(entry.number, 1, list.isOpen)?.dataset.picture);
}

/** The same entry as it is now, under the form that stands. */
export function renew(entry) {
  const pictures = ({ pages }) => String(pages.map((page) => page.picture));
  const moved = entry.number !== desk.entry.number || pictures(entry) !== pictures(desk.entry);
  desk.entry = entry;
  byId("head").innerHTML = entry.head;
  showLocalTimes(byId("head"));
  if (moved) viewer.showPage(entry, findMarks);
  drafts.show(entry);
  pressButtons();
}

/** Where the texts of the entry stand on the page that is seen. */
export async function findMarks(seen = picture) {
  const { number } = desk.entry;
  picture = seen;
  viewer.showMarks({});
  if (picture === null) return;
  try {
    const { marks, size } = await get(`/marks/${number}?picture=${seen}`);
    if (desk.entry.number !== number || picture !== seen) return;
    viewer.showMarks(marks);
    viewer.showSize(size);
  } catch { /* Marks are a help; without them the page is still there. */ }
}

export async function reloadList() {
  const data = await get("/list");
  list.replaceList(data.list);
  showState(data);
  markInList();
}

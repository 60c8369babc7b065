// What other tabs and programs did to the entry that is open: it is shown, or the person chooses. Nothing is lost.

import { get } from "./server.js";
import * as list from "./list.js";
import * as form from "./form.js";
import { desk, reloadList, renew, settle, show } from "./desk.js";
import { change, isSaving } from "./saving.js";
import { openRow } from "./opening.js";
import { said, showConflict, toast } from "./say.js";

const { noun } = document.documentElement.dataset;
const theirsOf = ({ number, id }) => get(`/entry/${number}?id=${encodeURIComponent(id)}`).catch(() => null);

/** The line is another one by now: the person chooses. */
export async function conflict(status) {
  const { shown, entry } = desk;
  const theirs = await theirsOf(entry);
  if (shown !== desk.shown) return;
  if (!theirs || theirs.id !== entry.id) {
    showConflict(`this ${noun} is no longer in the file`, {
      "Go on": () => { form.settle(entry.seen); return reloadList().then(() => openRow(list.first())); },
    });
    return;
  }
  const unlike = form.unlike(theirs).map(([name, text]) => `${name}: ${text.slice(0, 60) || "nothing"}`);
  showConflict(`another tab or program has changed this ${noun} since you opened it${unlike.length ? ` (there ${unlike.slice(0, 4).join(", ")})` : ""}`, {
    "Show the current version": () => { form.settle(desk.entry.seen); show(theirs); reloadList(); },
    "Save mine anyway": () => saveMine(theirs, status),
  });
}

/** All fields as they are seen here take the place of theirs. What has not been seen at all is not decided about. */
async function saveMine(theirs, status) {
  const about = ({ pages, source, says, kind }) => JSON.stringify([pages, source, says, kind]);
  const isSeen = about(theirs) === about(desk.entry) && form.rebase(theirs);
  if (isSeen) renew(theirs);
  else {
    const mine = form.values();
    form.settle(desk.entry.seen);
    show(theirs);
    form.fill(mine);
  }
  if (!(await change(isSeen ? status : null))) return;
  document.getElementById("conflict").hidden = true;
  const undecided = status ? `, and not ${said(status)}` : "";
  toast(`${desk.entry.id}: your version is saved${isSeen ? "" : `${undecided}: check what else changed`}`);
  await reloadList();
}

/** Take in what they did. */
export async function refresh() {
  await reloadList();
  if (!desk.entry) return;
  const { shown, entry: { number, seen } } = desk;
  const theirs = await theirsOf(desk.entry);
  // A decision that was made meanwhile is newer than this answer.
  if (shown !== desk.shown || desk.entry.seen !== seen || desk.busy) return;
  if (!theirs || theirs.seen === seen || isSaving()) {
    if (theirs && theirs.number !== number) { desk.entry.number = theirs.number; settle({ restored: false }); }
    return;
  }
  if (form.isDirty()) { await conflict(null); return; }
  show(theirs, { keepFocus: true });
  toast(`This ${noun} was changed by another tab or program; this is the current version.`);
}

// Saving: one change after the other, each of the entry whose form it was made in; nothing is overwritten unseen.

import { post, Refused, Unreachable } from "./server.js";
import * as list from "./list.js";
import * as form from "./form.js";
import { desk, findMarks, markInList, reloadList, renew, showState } from "./desk.js";
import { endComplaint, toast, trouble } from "./say.js";

const root = document.documentElement;
let queue = Promise.resolve();
let pending = 0, typingTimer = 0, waiting = null, onConflict = () => {};

/** `conflicted` hears that the line is another one by now, and which decision was to be made. */
export function startSaving(conflicted) { onConflict = conflicted; }

export const isSaving = () => pending > 0;

/** Whether something is on its way, or typed and not saved yet. Where nothing can be saved the tab keeps it. */
export const isUnsaved = () => isSaving() || (form.isDirty() && !desk.state.locked);

/** Do it when all that was asked for before is done. */
export function inTurn(task) {
  pending += 1;
  const done = queue.then(task).finally(() => { pending -= 1; });
  queue = done.catch(() => {});
  return done;
}

/** Send what was edited, and the decision; whether it is saved. What is typed in one go has the same `going`. */
export function change(status = null, { typing = false, going = "" } = {}) {
  clearTimeout(typingTimer);
  // Leaving a field with Enter asks twice; what has not been sent yet takes the second wish along.
  if (!status && !typing && waiting) return waiting;
  const { shown } = desk;
  const done = inTurn(() => {
    waiting = null;
    // Another entry is open by now: what stands in its form has nothing to do with this.
    return shown === desk.shown && send(status, { typing, going });
  });
  if (!status && !typing) waiting = done;
  return done;
}

/** Send what stands in this field at this moment: what is typed after it is another change. */
export function changeOf(control, going) {
  clearTimeout(typingTimer);
  const { shown } = desk, fields = { [control.name]: control.value };
  return inTurn(() => shown === desk.shown && send(null, { typing: false, going, fields }));
}

async function send(status, { typing, going, fields = form.edits() }) {
  const { entry, state, shown } = desk;
  if (!status && !Object.keys(fields).length) return true;
  if (state.locked) { toast(`Nothing can be saved: ${state.locked}`, "bad"); return false; }
  const confirmed = desk.asked === entry.number;
  try {
    const data = await post("/change", { number: entry.number, seen: entry.seen, status, fields, known: state.revision, going, confirmed });
    if (shown === desk.shown) accept(data, fields);
    takeIn(data);
    return true;
  } catch (error) {
    // What is half typed may well be refused; it is kept in the tab, and the person is still at it.
    if (typing && error instanceof Refused && error.status === 422) return false;
    if (error instanceof Refused && error.status === 409) await onConflict(status);
    else report(error);
    return false;
  }
}

/** What was sent is what the server has; typing may have gone on. */
function accept(data, fields) {
  renew(data.entry);
  document.getElementById("conflict").hidden = true;
  form.settle(data.entry.seen, fields);
  form.clearProblem();
  endComplaint();
  trouble("");
  if (Object.keys(fields).length) {
    desk.asked = 0;
    findMarks();
  }
  if (form.isDirty()) saveSoon();
}

/** The list and the head, after a change. */
function takeIn(data) {
  showState(data);
  list.replaceRow(data.entry.number, data.row);
  if (data.alone) markInList();
  else reloadList();
}

/** Save what is typed, if anything is; whether one may go on. */
export function flush() { return form.isDirty() && !desk.state.locked ? change() : queue.then(() => true); }

/** What is typed is in the file soon after, where nobody has decided yet: no crash costs more than a moment. */
export function saveSoon() {
  clearTimeout(typingTimer);
  if (!root.dataset.savesTyping || desk.entry?.status !== "unreviewed" || desk.state.locked) return;
  typingTimer = setTimeout(() => {
    if (form.isDirty() && !desk.busy) change(null, { typing: true, going: form.going() });
  }, 900);
}

/** Say why something was not saved, and at which field. */
export function report(error) {
  if (error instanceof Unreachable) {
    trouble("Not saved: loupe review does not answer. What you typed is still here; start it again as before and open the address that it prints.");
  } else if (error instanceof Refused && error.status === 422) {
    if (error.data.ask) desk.asked = desk.entry.number;
    else form.showProblem(error.data.field, error.message);
    toast(`Not saved: ${error.message}`, "bad");
  } else {
    toast(`Not done: ${error.message}${error.data?.hint ? ` (${error.data.hint})` : ""}`, "bad");
    if (error instanceof Refused && error.status === 403) trouble(`Not saved: ${error.message}`);
  }
}

// What a person decides about the entry that is open: its status, a draft of an engine, that a change is taken back.

import { post, Refused } from "./server.js";
import * as list from "./list.js";
import * as viewer from "./viewer.js";
import * as form from "./form.js";
import * as drafts from "./drafts.js";
import { desk, reloadList, show, showState } from "./desk.js";
import { change, flush, inTurn, report } from "./saving.js";
import { isOpening, open } from "./opening.js";
import { refresh } from "./others.js";
import { finished, said, toast } from "./say.js";

const { refused } = document.documentElement.dataset;

/** A key that comes before the next entry is to be seen was not meant for it. */
const isSeen = () => desk.entry && !desk.busy && !isOpening();

async function alone(action) {
  if (!isSeen()) return;
  desk.busy = true;
  try { await action(); } finally { desk.busy = false; }
}

export function decide(status) {
  return alone(async () => {
    if (desk.entry.broken || (status === "rejected" && !refused)) return;
    if (status === "verified" && viewer.isDrawing()) { toast("The page is still loading; no decision was saved."); return; }
    // What was edited is a change of its own: taking back the decision leaves it.
    if (await flush()) await decideNow(status);
  });
}

async function decideNow(status) {
  const { number, id } = desk.entry;
  const next = list.neighbour(number, 1, list.isOpen, { round: true });
  const target = next ? Number(next.dataset.number) : 0;
  if (!(await change(status))) return;
  toast(`${id}: ${said(status)}`);
  if (status === "unreviewed") return;
  if (target && target !== desk.entry.number) await open(target);
  else finished(desk.state.counts);
}

export function undo() {
  return alone(async () => {
    if (!(await flush())) return;
    try {
      const data = await inTurn(() => post("/undo", { known: desk.state.revision }));
      toast(data.message);
      if (!data.entry) return;
      showState(data);
      list.replaceRow(data.entry.number, data.row);
      show(data.entry);
      if (!data.alone) await reloadList();
    } catch (error) {
      report(error);
      if (error instanceof Refused) await refresh();
    }
  });
}

/** A draft of an engine, whole or in one field, becomes the truth. */
export async function take(place, name = null) {
  if (!isSeen() || !drafts.take(desk.entry, place, name)) return;
  const { engine } = desk.entry.drafts[place];
  if (await change()) toast(`Taken: what ${engine} has${name ? ` in ${name}` : ""}`);
}

/** The draft or the label of that number. */
export async function digit(number) {
  if (desk.entry?.drafts.length) await take(number - 1);
  else if (isSeen() && form.chooseLabel(number - 1)) await change();
}

export async function differences(step) {
  if (isSeen() && form.stepDifferences(step)) await change();
}

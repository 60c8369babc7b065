// Opening another entry: not before all that belongs to the one that is left is saved, and only the last wish counts.

import { get, Refused } from "./server.js";
import * as list from "./list.js";
import { desk, markInList, reloadList, show } from "./desk.js";
import { flush, isUnsaved, report } from "./saving.js";
import { finished } from "./say.js";

let wishes = 0, underWay = 0, aim = 0;

/** Whether another entry is about to be shown: a key that comes now was meant for neither. */
export const isOpening = () => underWay > 0;

/** Where the next step begins: keys that come fast go on from the entry that is on its way. */
const from = () => (isOpening() ? aim : desk.entry.number);

/** Show an entry; whether it is there. */
export async function open(number) {
  const wish = ++wishes;
  underWay += 1;
  aim = number;
  list.markCurrent(number);
  try {
    let next;
    do {
      if (!(await flush())) return false;
      next = await get(`/entry/${number}`);
      if (wish !== wishes) return false;
    } while (isUnsaved());
    show(next);
    return true;
  } catch (error) {
    report(error);
    if (error instanceof Refused && error.status === 404) await reloadList();
    return false;
  } finally {
    underWay -= 1;
    if (!isOpening()) markInList();
  }
}

export const openRow = (found) => (found ? open(Number(found.dataset.number)) : Promise.resolve(false));

export const move = (step) => openRow(list.neighbour(from(), step));

export const nextGroup = () => openRow(list.nextGroup(from()));

/** The next that is to be reviewed, round the end of the list. */
export async function nextOpen(step) {
  const next = list.neighbour(from(), step, list.isOpen, { round: true });
  if (next) await openRow(next);
  else if (await flush()) finished(desk.state.counts);
}

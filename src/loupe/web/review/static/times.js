// Times as they are where the browser is; files have them in UTC.

const INSTANT = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/;

/** In the remark of a head: the time of a decision, with what the file has as its title. */
export function showLocalTimes(head) {
  for (const line of head.querySelectorAll(".remark")) {
    const [raw] = line.textContent.match(INSTANT) || [], time = new Date(raw ?? NaN);
    if (Number.isNaN(time.getTime())) continue;
    const [before, after] = [line.textContent.slice(0, line.textContent.indexOf(raw)), line.textContent.slice(line.textContent.indexOf(raw) + raw.length)];
    const shown = Object.assign(document.createElement("time"), { dateTime: raw, title: raw, textContent: time.toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) });
    line.replaceChildren(before, shown, after);
  }
}

// What the page asks the server for. Nothing is sent anywhere else: the policy of the page forbids it.

const root = document.documentElement;
const KEPT = "loupe-token";

/** Without this nothing can be changed. It came behind the # of the address that was printed, and is kept where only
 * pages of this very port can read it: cookies go to every server of this machine. */
function token() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  try {
    if (given) {
      localStorage.setItem(KEPT, given);
      history.replaceState(null, "", location.pathname + location.search);
    }
    return given || localStorage.getItem(KEPT) || "";
  } catch {
    return given || root.dataset.token || "";  // Without storage this tab has it until it is loaded anew.
  }
}

root.dataset.token = token();

/** Whether changes may be asked for at all: whoever came here by another way may only look. */
export const mayWrite = () => token() !== "";

/** An answer that says no; `data` has the message, and the field that it is about. */
export class Refused extends Error {
  constructor(status, data) {
    super(data.message || "the server refused it");
    this.status = status;
    this.data = data;
  }
}

/** No answer at all: the program was ended, or the machine sleeps. */
export class Unreachable extends Error {}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Unreachable("Loupe does not answer");
  }
  let data = {};
  try { data = await answer.json(); } catch { /* An answer without a body says all by its status. */ }
  if (!answer.ok) throw new Refused(answer.status, data);
  return data;
}

export const get = (path) => ask(path, {});

export const post = (path, body, keepalive = false) => ask(path, {
  method: "POST",
  keepalive,
  headers: { "Content-Type": "application/json", "X-Loupe-Token": token() },
  body: JSON.stringify(body),
});

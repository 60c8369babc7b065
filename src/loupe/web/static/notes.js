// Short notes on the page: what was just done, what is wrong.

let toastTimer = 0;
export function toast(text, kind = "") {
  const line = document.getElementById("toast");
  line.textContent = text;
  line.className = `toast shown ${kind}`;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { line.className = "toast"; }, kind === "bad" ? 8000 : 3500);
}

/** What could not be done is past once something else has been. */
export function endComplaint() {
  const line = document.getElementById("toast");
  if (line.classList.contains("bad")) line.className = "toast";
}

export function trouble(text) {
  document.getElementById("trouble").textContent = text;
  document.getElementById("trouble").hidden = !text;
}

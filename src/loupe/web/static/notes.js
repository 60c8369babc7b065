// Short notes on the page: what was just done, what is wrong.

let toastTimer = 0;
export function toast(text, kind = "") {
  const line = document.getElementById("toast");
  line.textContent = text;
  line.className = `toast shown ${kind}`;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { line.className = "toast"; }, kind === "bad" ? 8000 : 3500);
}

export function trouble(text) {
  document.getElementById("trouble").textContent = text;
  document.getElementById("trouble").hidden = !text;
}

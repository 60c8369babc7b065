// Light or dark: as the system has it, until the person chooses.

const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");

function storedTheme(value) {
  try {
    if (value) localStorage.setItem("loupe-theme", value);
    return localStorage.getItem("loupe-theme");
  } catch {
    return value;
  }
}

function applyTheme(name) { root.dataset.theme = name || (dark.matches ? "dark" : "light"); }

export function switchTheme() {
  const name = root.dataset.theme === "dark" ? "light" : "dark";
  storedTheme(name);
  applyTheme(name);
}

export function startTheme() {
  applyTheme(storedTheme());
  dark.addEventListener("change", () => applyTheme(storedTheme()));
  document.getElementById("theme").addEventListener("click", switchTheme);
}

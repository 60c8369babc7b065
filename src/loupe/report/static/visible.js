// Characters that a reader cannot see, shown by their numbers: in the report, in `loupe view` and in `loupe review`.

const MARK_LIMIT = 2000;
// The lists are Python's (results/control_characters.py).
const { invisible: INVISIBLE, shaping: SHAPING } = document.documentElement.dataset;
const HIDDEN = new RegExp(`((?!\\r\\n)[${INVISIBLE}]|(?<![^\\0-\\x7f])[\\u200c\\u200d])\\1*`, "gu");
const HIDDEN_OR_SHAPING = new RegExp(`([${INVISIBLE}${SHAPING}])\\1*`, "gu");

const codeOf = (char) => `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/**
 * Text nodes, with a visible mark in place of characters (and runs of them) that would hide or reorder others. Joiners
 * and variation selectors stay, because they shape letters and emoji; in a `difference` they are what differs.
 */
function visibleText(text, difference = false) {
  const parts = [], hidden = difference ? HIDDEN_OR_SHAPING : HIDDEN;
  let from = 0;
  for (const match of text.matchAll(hidden)) {
    const count = [...match[0]].length, times = count > 1 ? ` × ${count.toLocaleString("en")}` : "";
    if (parts.length > 2 * MARK_LIMIT) return [...parts, text.slice(from).replace(hidden, "\ufffd")];
    const mark = Object.assign(document.createElement("span"), { className: "control", title: "invisible character", textContent: codeOf(match[0]) + times });
    parts.push(text.slice(from, match.index), mark);
    from = match.index + match[0].length;
  }
  return [...parts, text.slice(from)].filter((part) => part !== "");
}

/** The same in all texts of a block. */
function showHidden(block) {
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) if (walker.currentNode.data.search(HIDDEN) >= 0) found.push(walker.currentNode);
  for (const node of found) node.replaceWith(...visibleText(node.data));
}

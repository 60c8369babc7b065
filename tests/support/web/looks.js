// What is wrong with the look of a page, as far as a machine can see it: a list of sentences.
// Texts are judged by the boxes of their lines, cut to what their scrolling boxes let through.
() => {
  // Pieces of a match unfold with a click; words of a test in a list are its first two lines.
  const CUT_ON_PURPOSE = ".piece, .fact-link-words, .area-tag";
  const found = [];
  const named = (element) => {
    const own = element.id ? `#${element.id}` : [...element.classList].map((name) => `.${name}`).join("");
    const text = (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
    return `${element.tagName.toLowerCase()}${own} “${text}”`;
  };
  const styles = new Map();
  const styleOf = (element) => {
    if (!styles.has(element)) styles.set(element, getComputedStyle(element));
    return styles.get(element);
  };
  const parentOf = (element) => element.parentElement;

  // Colours, as [red, green, blue, alpha] with channels from 0 to 255.
  const colour = (text) => {
    const numbers = (text.match(/-?[\d.]+(e-?\d+)?%?/g) || []).map(parseFloat);
    if (text.startsWith("color(srgb")) return [...numbers.slice(0, 3).map((one) => 255 * one), numbers[3] ?? 1];
    return text.startsWith("rgb") ? [...numbers.slice(0, 3), numbers[3] ?? 1] : [0, 0, 0, 0];
  };
  const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3])).concat(1);
  const groundOf = (element) => {
    const layers = [];
    for (let one = element; one; one = parentOf(one)) {
      const paint = colour(styleOf(one).backgroundColor);
      if (paint[3]) layers.push(paint);
      if (paint[3] === 1) break;
    }
    const dark = styleOf(document.documentElement).colorScheme === "dark";
    return layers.reverse().reduce((below, top) => over(top, below), dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  };
  const light = ([red, green, blue]) =>
    [red, green, blue]
      .map((one) => one / 255)
      .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
      .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };

  const clips = (style, axis) => style[`overflow${axis}`] !== "visible";
  const scrolls = (style, axis) => ["auto", "scroll"].includes(style[`overflow${axis}`]);
  // What lies over the rest of the page on a ground of its own: a bar that stays, a drawer.
  const layerOf = (element) => {
    for (let one = element; one; one = parentOf(one))
      if (["absolute", "fixed", "sticky"].includes(styleOf(one).position) && colour(styleOf(one).backgroundColor)[3] > 0.9) return one;
    return null;
  };
  const leaves = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element || element.closest("script, style, template, noscript, title, option, .katex-mathml")) continue;
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const lines = [...range.getClientRects()].filter((box) => box.width > 1 && box.height > 1);
    if (lines.length) leaves.push({ element, lines });
  }

  // Where an ancestor cuts a text off without a way to scroll to it.
  for (const leaf of leaves) {
    const { element, lines } = leaf;
    const kept = [];
    let cut = "";
    for (let line of lines) {
      let box = { left: line.left, right: line.right, top: line.top, bottom: line.bottom };
      for (let one = element; one && one !== document.body && one !== document.documentElement; one = parentOf(one)) {
        const style = styleOf(one);
        if (style.display === "inline" || one instanceof SVGElement && one.tagName !== "svg") continue;
        if (one.tagName === "svg" && style.overflowX === "visible") continue;
        const frame = one.getBoundingClientRect();
        for (const [axis, low, high] of [["X", "left", "right"], ["Y", "top", "bottom"]]) {
          if (!clips(style, axis)) continue;
          const beyond = Math.max(frame[low] - box[low], box[high] - frame[high]);
          // The height of a line's box is that of the font; a pixel or two of it hold no ink.
          const ink = axis === "Y" ? 0.2 * (line.bottom - line.top) : 1.5;
          if (beyond > ink && !scrolls(style, axis)) {
            if (axis === "Y" || style.textOverflow !== "ellipsis") cut = `${one === element ? "itself" : named(one)}`;
            else if (!one.closest("[title]") && !one.closest("a[href]")) cut = "an ellipsis, and nothing tells the rest";
          }
          box = { ...box, [low]: Math.max(box[low], frame[low]), [high]: Math.min(box[high], frame[high]) };
        }
      }
      if (box.right - box.left > 1 && box.bottom - box.top > 1) kept.push(box);
    }
    if (cut && !element.closest(CUT_ON_PURPOSE)) found.push(`cut: ${named(element)} by ${cut}`);
    leaf.kept = kept;
  }

  // Short words that are squeezed until they break.
  for (const { element, lines } of leaves) {
    const word = element.textContent.trim();
    const tops = new Set(lines.map((line) => Math.round(line.top)));
    if (word.length < 15 && /^[\p{L}\p{N}.,]+$/u.test(word) && tops.size > 1) found.push(`broken: ${named(element)}`);
  }

  // Names that end in … though their table leaves room beside them.
  for (const element of document.querySelectorAll("*")) {
    const style = styleOf(element);
    if (style.textOverflow !== "ellipsis" || element.scrollWidth <= element.clientWidth + 1) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const table = element.closest("table");
    const frame = table && table.parentElement.getBoundingClientRect();
    if (table && frame.width - table.getBoundingClientRect().width > 24) found.push(`cut with room beside it: ${named(element)}`);
  }

  // Entries of a list that are cut to the same text.
  const shown = (element) => {
    const range = document.createRange();
    const edge = element.getBoundingClientRect();
    const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    let text = "";
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      for (let at = 0; at < node.data.length; at++) {
        range.setStart(node, at);
        range.setEnd(node, at + 1);
        const box = range.getBoundingClientRect();
        if (box.right <= edge.right - 8 && box.left >= edge.left - 1) text += node.data[at];
      }
    }
    return text;
  };
  const cutNames = new Map();
  for (const element of document.querySelectorAll(".card-name, .row, .card-engine, thead .short, .switch bdi, .group-name")) {
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const lists = element.matches(".card-name") ? ".cards" : "ol, thead, .card-scores, .switch, #list";
    const list = element.closest(lists) || document.body;
    const seen = cutNames.get(list) || new Map();
    cutNames.set(list, seen);
    const all = element.textContent, part = shown(element);
    if (seen.has(part) && seen.get(part) !== all) found.push(`looks like another: ${named(element)} as “${part}”`);
    seen.set(part, all);
  }

  // Texts over texts.
  const boxes = leaves.flatMap(({ element, kept }) => kept.map((box) => {
    const slack = Math.min(4, 0.24 * (box.bottom - box.top));
    return { element, layer: layerOf(element), left: box.left + 1, right: box.right - 1, top: box.top + slack, bottom: box.bottom - slack };
  })).sort((a, b) => a.top - b.top);
  boxes.forEach((one, at) => {
    for (let next = at + 1; next < boxes.length && boxes[next].top < one.bottom; next++) {
      const other = boxes[next];
      if (one.layer !== other.layer || one.element === other.element || one.element.contains(other.element) || other.element.contains(one.element)) continue;
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - other.top;
      if (wide > 1 && high > 1 && !one.element.closest(".katex, .formula, .page-frame, [popover]")) found.push(`overlap: ${named(one.element)} and ${named(other.element)}`);
    }
  });

  // Contrast: 4.5, and 3 for large letters (WCAG 2.2, 1.4.3); what cannot be used is exempt.
  const pale = new Set();
  for (const { element } of leaves) {
    if (element.closest(":disabled, [aria-disabled='true'], .page-frame, [aria-hidden='true'] text")) continue;
    const style = styleOf(element);
    const ground = groundOf(element);
    let ink = colour(element instanceof SVGElement ? style.fill : style.color);
    let opacity = 1;
    for (let one = element; one; one = parentOf(one)) opacity *= parseFloat(styleOf(one).opacity);
    ink = over([ink[0], ink[1], ink[2], ink[3] * opacity], ground);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const is = contrast(ink, ground);
    if (is < least - 0.005) pale.add(`pale: ${named(element)} has a contrast of ${is.toFixed(2)}`);
  }
  found.push(...pale);

  // Rows hold what stands in them, and are no higher than that asks for.
  for (const row of document.querySelectorAll("tr")) {
    if (!row.checkVisibility() || row.closest(".pane-body, .draft-grid, .grid")) continue;
    const high = row.getBoundingClientRect().height;
    const cells = [...row.cells].filter((cell) => cell.rowSpan === 1 && cell.checkVisibility());
    if (!cells.length) continue;
    const lines = Math.max(0, ...cells.map((cell) => cell.scrollHeight));
    // On a telephone a row is a block with a line or two for each cell.
    const most = innerWidth < 641 ? 90 * cells.length : 160;
    if (high < 20 || high + 1 < lines || high > most) found.push(`row of ${high.toFixed(0)} px: ${named(row)}`);
  }
  // Dots of the leaderboard stand where the scale above them says.
  for (const table of document.querySelectorAll(".leaderboard")) {
    const ticks = [...table.querySelectorAll(".whisker-head text")].map((one) => {
      const box = one.getBoundingClientRect();
      return [parseFloat(one.textContent), (box.left + box.right) / 2];
    });
    if (ticks.length < 2 || !ticks[0][1]) continue;
    const [[low, start], [high, end]] = [ticks[0], ticks.at(-1)];
    for (const row of table.tBodies[0].rows) {
      const dot = row.querySelector(".whisker .point")?.getBoundingClientRect();
      const value = parseFloat((row.querySelector(".headline .value")?.textContent || "").replace(/,/g, ""));
      if (!dot) continue;
      const at = start + ((value - low) / (high - low)) * (end - start);
      if (Math.abs((dot.left + dot.right) / 2 - at) > 2) found.push(`a dot beside its value: ${named(row)}`);
    }
  }
  // What is stacked on a telephone needs no scrolling sideways.
  for (const box of innerWidth < 641 ? document.querySelectorAll(".table-scroll:not(.heat-scroll, .pane-body *)") : [])
    if (box.scrollWidth > box.clientWidth + 1) found.push(`goes on beyond the edge: ${named(box)}`);
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) {
    const out = [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && one.checkVisibility());
    found.push(`the page is ${wide} px wide: ${out.length ? named(out.at(-1)) : ""}`);
  }
  // Controls and pictures that tell nobody what they are.
  for (const one of document.querySelectorAll("button, input:not([type='hidden']), select, textarea, img")) {
    const said = one.getAttribute("aria-label") || one.getAttribute("alt") || one.textContent.trim();
    if (!one.labels?.length && !said && !one.querySelector("img[alt]") && !one.closest(".card, [hidden]") && one.checkVisibility())
      found.push(`without a name: ${one.outerHTML.slice(0, 120)}`);
  }
  // Which kinds of elements have a class that lays them out: a row of a table and a bar in a picture are no one thing.
  const laysOut = new Set();
  const COLOURS = /^(--|color|fill|background|stroke|opacity|font-weight)/;
  const collect = (rules) => {
    for (const rule of rules) {
      if (rule.cssRules?.length && !rule.selectorText) collect(rule.cssRules);
      for (const one of (rule.selectorText || "").split(",")) {
        const name = one.trim().match(/^\.([\w-]+)$/)?.[1];
        if (name && [...rule.style].some((property) => !COLOURS.test(property))) laysOut.add(name);
      }
    }
  };
  for (const sheet of document.styleSheets) if (!(sheet.href || "").includes("katex")) collect(sheet.cssRules);
  const kindOf = (element) => {
    if (element instanceof HTMLTableCellElement) return "cell";
    if (["TR", "TABLE", "TBODY", "THEAD"].includes(element.tagName)) return element.tagName.toLowerCase();
    return element instanceof SVGElement ? "picture" : "text";
  };
  const kinds = {};
  for (const element of document.body.querySelectorAll("[class]"))
    for (const name of element.classList) if (laysOut.has(name)) (kinds[name] ??= new Set()).add(kindOf(element));
  return { faults: [...new Set(found)], kinds: Object.fromEntries(Object.entries(kinds).map(([name, all]) => [name, [...all]])) };
}

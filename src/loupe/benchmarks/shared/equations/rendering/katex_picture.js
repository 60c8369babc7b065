// The page that draws for people: beside what katex_page.js answers (measured), where every glyph, rule and path is.
(equations, measured) => {
  const MOST_PARTS = 800, MOST_PATH = 60000;
  const container = document.getElementById("equation-container");
  const pen = document.createElement("canvas").getContext("2d");
  const seen = (span) => span.childElementCount === 0 && /\S/.test(span.textContent);
  const box = (rect) => [rect.left, rect.top, rect.right, rect.bottom];
  const round = (value) => Math.round(value * 100) / 100;

  const glyph = (span) => {
    const style = getComputedStyle(span), range = document.createRange();
    range.selectNodeContents(span);
    const rect = range.getBoundingClientRect();
    pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const baseline = rect.top + pen.measureText("x").fontBoundingBoxAscent;
    return [rect.left, baseline, rect.width, parseFloat(style.fontSize), style.fontStyle === "italic", Number(style.fontWeight) >= 600];
  };

  const rules = (element) => {
    const style = getComputedStyle(element), [left, top, right, bottom] = box(element.getBoundingClientRect());
    const width = (side) => (style[`border${side}Style`] === "none" ? 0 : parseFloat(style[`border${side}Width`]));
    const [up, down, before, after] = ["Top", "Bottom", "Left", "Right"].map(width);
    const found = [];
    if (up) found.push([left, top, right - left, up]);
    if (down) found.push([left, bottom - down, right - left, down]);
    if (before) found.push([left, top, before, bottom - top]);
    if (after) found.push([right - after, top, after, bottom - top]);
    return found.filter(([, , across, along]) => across > 0 && along > 0);
  };

  const shape = (part) => {
    const matrix = part.getScreenCTM();
    let clip = box(part.ownerSVGElement.getBoundingClientRect());
    for (let above = part.ownerSVGElement.parentElement; above && above !== container; above = above.parentElement) {
      if (getComputedStyle(above).overflowX !== "hidden") continue;
      const [left, top, right, bottom] = box(above.getBoundingClientRect());
      clip = [Math.max(clip[0], left), Math.max(clip[1], top), Math.min(clip[2], right), Math.min(clip[3], bottom)];
    }
    const at = (name) => part[name].baseVal.value;
    const line = part.tagName === "line";
    const path = line ? `M${at("x1")} ${at("y1")}L${at("x2")} ${at("y2")}` : part.getAttribute("d") || "";
    return [path, [matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f], [clip[0], clip[1], clip[2] - clip[0], clip[3] - clip[1]], line];
  };

  const pictured = (spans) => {
    const glyphs = spans.map(glyph);
    const html = [...container.querySelectorAll(".katex-html *")];
    const lines = html.filter((element) => !element.closest("svg")).flatMap(rules);
    const shapes = html.filter((element) => element.tagName === "path" || element.tagName === "line").map(shape).filter(([, , clip]) => clip[2] > 0 && clip[3] > 0);
    const length = shapes.reduce((sum, [path]) => sum + path.length, 0);
    if (glyphs.length + lines.length + shapes.length > MOST_PARTS || length > MOST_PATH) return null;
    const boxes = [
      ...glyphs.map(([x, baseline, width, size]) => [x, baseline - size, x + width, baseline + size * 0.3]),
      ...lines.map(([x, y, width, height]) => [x, y, x + width, y + height]),
      ...shapes.map(([, , [x, y, width, height]]) => [x, y, x + width, y + height]),
    ];
    if (!boxes.length) return null;
    const [left, top] = [0, 1].map((side) => Math.min(...boxes.map((each) => each[side])) - 2);
    const [right, bottom] = [2, 3].map((side) => Math.max(...boxes.map((each) => each[side])) + 2);
    return {
      width: round(right - left), height: round(bottom - top),
      glyphs: glyphs.map(([x, baseline, width, size, italic, bold]) => [round(x - left), round(baseline - top), round(width), round(size), italic, bold]),
      rules: lines.map(([x, y, width, height]) => [x - left, y - top, width, height].map(round)),
      shapes: shapes.map(([path, [a, b, c, d, e, f], [x, y, width, height], line]) => [path, [a, b, c, d, e - left, f - top], [x - left, y - top, width, height].map(round), line]),
    };
  };

  const draw = (equation) => {
    try {
      katex.render(equation, container, { displayMode: true, throwOnError: true });
    } catch (error) {
      container.replaceChildren();
      return { error: String(error.message || error) || "refused" };
    }
    const spans = Array.from(container.querySelectorAll("span")).filter(seen);
    const drawn = { texts: spans.map((span) => span.textContent.trim()) };
    drawn.boxes = spans.map((span) => {
      const rect = span.getBoundingClientRect();
      return [rect.x, rect.y, rect.width, rect.height];
    });
    // The hidden MathML has spans of its own in annotations only; every span with text is one that is seen.
    drawn.picture = pictured(spans);
    container.replaceChildren();
    return drawn;
  };
  // Half a surrogate pair (\char"D800) is no text for who reads this: one character stands for it.
  const whole = (_, value) => (typeof value === "string" ? value.replace(/[\uD800-\uDFFF]/gu, "\uFFFD") : value);
  const drawings = JSON.parse(equations).map(draw), answer = JSON.stringify(drawings);
  return answer.includes("\\ud") ? JSON.stringify(drawings, whole) : answer;
}

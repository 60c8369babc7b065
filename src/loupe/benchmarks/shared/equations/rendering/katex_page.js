// The page that draws: called with a JSON list of equations, answers with a JSON list of what became of each.
// An equation that is only looked at is drawn outside the document, so that nothing is laid out; one that is measured
// is drawn alone in the container, as upstream does. One that is measured was drawn before, so it does not fail here.
(equations, measured) => {
  const container = document.getElementById("equation-container");
  const seen = (span) => span.childElementCount === 0 && /\S/.test(span.textContent);
  const draw = (equation) => {
    const target = measured ? container : document.createElement("div");
    try {
      katex.render(equation, target, { displayMode: true, throwOnError: true });
    } catch (error) {
      target.replaceChildren();
      return { error: String(error.message || error) || "refused" };
    }
    const spans = Array.from(target.querySelectorAll("span")).filter(seen);
    const math = target.querySelector(".katex-mathml math");
    const drawn = { mathml: math ? math.outerHTML : "", texts: spans.map((span) => span.textContent.trim()) };
    if (measured) {
      drawn.boxes = spans.map((span) => {
        const box = span.getBoundingClientRect();
        return [box.x, box.y, box.width, box.height];
      });
    }
    target.replaceChildren();
    return drawn;
  };
  // Half a surrogate pair (\char"D800) is no text for who reads this: one character stands for it.
  const whole = (_, value) => (typeof value === "string" ? value.replace(/[\uD800-\uDFFF]/gu, "\uFFFD") : value);
  const drawings = JSON.parse(equations).map(draw), answer = JSON.stringify(drawings);
  return answer.includes("\\ud") ? JSON.stringify(drawings, whole) : answer;
}

// The page that makes MathML: called with a JSON list of equations, answers with a JSON list of what became of each.
// The first character of an equation says how it is set: D as a display, anything else in a line. Nothing is laid out.
(equations) => {
  const read = (equation) => {
    const options = {
      output: "mathml", displayMode: equation[0] === "D", strict: "ignore", throwOnError: true, trust: false,
    };
    try {
      return { mathml: katex.renderToString(equation.slice(1), options) };
    } catch (error) {
      return { error: String(error.message || error) || "refused" };
    }
  };
  const whole = (_, value) => (typeof value === "string" ? value.replace(/[\uD800-\uDFFF]/gu, "\uFFFD") : value);
  return JSON.stringify(JSON.parse(equations).map(read), whole);
}

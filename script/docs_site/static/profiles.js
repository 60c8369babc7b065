// Filters above the tables of docs/engines/profiles: only what every chosen value fits is shown.
const FILTERED = ["kind", "reads", "runs on", "proven"]

function cellsOf(table) {
  const heads = [...table.tHead.rows[0].cells].map(cell => cell.textContent.trim())
  return [...table.tBodies[0].rows].map(row => {
    const cells = [...row.cells].map(cell => cell.textContent.trim())
    return { row, text: row.textContent.toLowerCase(), of: Object.fromEntries(heads.map((head, at) => [head, cells[at].split(/[,;] /)])) }
  })
}

function labelled(text, control) {
  const label = document.createElement("label")
  label.append(text, control)
  return label
}

function choice(head, rows) {
  const select = document.createElement("select")
  select.name = head
  const values = [...new Set(rows.flatMap(row => row.of[head]))].sort()
  select.append(new Option("any", ""), ...values.map(value => new Option(value, value)))
  return select
}

function addFilters(section) {
  const tables = [...section.querySelectorAll("table")].filter(table => table.tHead?.textContent.includes("proven"))
  if (!tables.length) return
  const rows = tables.flatMap(cellsOf)
  const form = document.createElement("form")
  form.className = "filters"
  form.setAttribute("role", "search")
  const words = Object.assign(document.createElement("input"), { type: "search" })
  const selects = FILTERED.map(head => choice(head, rows))
  const count = document.createElement("output")
  const reset = Object.assign(document.createElement("button"), { type: "reset", textContent: "Show all" })
  form.append(labelled("contains", words), ...selects.map(select => labelled(select.name, select)), reset, count)

  function show() {
    const wanted = words.value.toLowerCase().split(/\s+/)
    for (const each of rows) {
      const fits = selects.every(select => !select.value || each.of[select.name].includes(select.value))
      each.row.hidden = !fits || !wanted.every(word => each.text.includes(word))
    }
    for (const table of tables) table.closest("section").hidden = [...table.tBodies[0].rows].every(row => row.hidden)
    count.textContent = `${rows.filter(each => !each.row.hidden).length} of ${rows.length} profiles`
  }
  form.addEventListener("input", show)
  form.addEventListener("submit", event => event.preventDefault())
  form.addEventListener("reset", () => setTimeout(show))
  tables[0].closest("section").before(form)
  show()
}

document.addEventListener("DOMContentLoaded", () => {
  const section = document.getElementById("all-profiles")
  if (section) addFilters(section)
})

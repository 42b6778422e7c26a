// Saves the chart with the given key: as PNG or SVG through the chart's own button, or its numbers as CSV.
export default function ({ data, parentElement }) {
  const row = parentElement.querySelector(".row")
  row.replaceChildren("Save as")
  const plotOf = () => document.querySelector(`.st-key-${data.key} .js-plotly-plot`)
  for (const format of ["png", "svg", "csv"]) {
    const button = document.createElement("button")
    button.type = "button"
    button.textContent = format.toUpperCase()
    button.setAttribute("aria-label", `Save ${data.file} as ${format.toUpperCase()}`)
    button.onclick = () => {
      const plot = plotOf()
      if (plot && format === "csv") return download(`${data.file}.csv`, numbersOf(plot))
      const camera = plot?.querySelector('.modebar-btn[data-attr="toImage"], .modebar-btn[data-title^="Download plot"]')
      if (!camera) return
      plot._context.toImageButtonOptions = { format, filename: data.file, scale: format === "png" ? 2 : 1 }
      camera.click()
    }
    row.appendChild(button)
  }
}

/** The numbers of a chart as CSV, one per line: column, row and value of a heat map, or x, y and text of other charts. */
function numbersOf(plot) {
  const lines = [["series", "x", "y", "value"]]
  plot._fullData.forEach((trace, number) => {
    const name = trace.name && !/^trace \d+$/.test(trace.name) ? trace.name : String(number + 1)
    if (trace.z) {
      // Heat maps of many heads are sent as integers in steps of 1/255.
      const max = trace.coloraxis && plot._fullLayout[trace.coloraxis]?.cmax === 255 ? 255 : 1
      const axis = (labels, n) => (labels?.length ? [...labels] : [...Array(n).keys()])
      const rows = [...trace.z], ys = axis(trace.y, rows.length), xs = axis(trace.x, rows[0]?.length ?? 0)
      rows.forEach((cells, y) => [...cells].forEach((z, x) => {
        if (Number.isFinite(z)) lines.push([name, xs[x], ys[y], max === 1 ? z : (z / max).toFixed(3)])
      }))
    } else if (trace.hoverinfo !== "skip" && !(trace.opacity === 0 || trace.marker?.opacity === 0)) {
      const n = Math.max(trace.x?.length ?? 0, trace.y?.length ?? 0)
      for (let k = 0; k < n; k++) lines.push([name, trace.x?.[k], trace.y?.[k], Array.isArray(trace.text) ? trace.text[k] : ""])
    }
  })
  return lines.map((line) => line.map(csvCell).join(",")).join("\r\n")
}

/** A CSV cell without the chart's markup and invisible characters, written so that no spreadsheet reads a formula. */
function csvCell(value) {
  let text = String(value ?? "").replace(/<[^>]*>|[\u200b\u200c\u2068\u2069]/g, "")
  for (const [entity, character] of [["&lt;", "<"], ["&gt;", ">"], ["&amp;", "&"]]) text = text.replaceAll(entity, character)
  if (/^[=+@\t\r]|^-(?![\d.])/.test(text)) text = `'${text}`
  return /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function download(name, text) {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}

// The menu "Save": each chart of the page as PNG or SVG, through the chart's own button, or its numbers as CSV.
export default function ({ parentElement }) {
  const menu = parentElement.querySelector("details"), list = parentElement.querySelector(".list")
  const close = ({ key, target, isTrusted }) => {
    if (!isTrusted) return // a click of this menu on a chart's own button
    if (key ? key === "Escape" : !parentElement.contains(target) && !parentElement.host?.contains(target)) menu.open = false
  }
  menu.ontoggle = () => menu.open && list.replaceChildren(...[...document.querySelectorAll(".js-plotly-plot")].flatMap(rowOf))
  document.addEventListener("click", close)
  document.addEventListener("keydown", close)
  return () => {
    document.removeEventListener("click", close)
    document.removeEventListener("keydown", close)
  }
}

/** The first clause of a chart's description, and its three buttons. */
function rowOf(plot) {
  const filename = plot._context.toImageButtonOptions.filename
  const about = plot.closest("[role=figure], [aria-label]")?.getAttribute("aria-label") ?? filename
  const name = document.createElement("span")
  name.textContent = about.split(/[;:,]/)[0]
  return [name, ...["png", "svg", "csv"].map((format) => {
    const button = document.createElement("button")
    button.type = "button"
    button.textContent = format.toUpperCase()
    button.setAttribute("aria-label", `Save ${filename} as ${format.toUpperCase()}`)
    button.onclick = () => {
      if (format === "csv") return download(`${filename}.csv`, numbersOf(plot))
      plot._context.toImageButtonOptions = { format, filename, scale: format === "png" ? 2 : 1 }
      plot.querySelector('.modebar-btn[data-attr="toImage"], .modebar-btn[data-title^="Download plot"]')?.click()
    }
    return button
  })]
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

// Saves the chart of the given key through its own camera button, as PNG or SVG.
export default function ({ data, parentElement }) {
  const row = parentElement.querySelector(".row")
  row.replaceChildren("Save as")
  for (const format of ["png", "svg"]) {
    const button = document.createElement("button")
    button.type = "button"
    button.textContent = format.toUpperCase()
    button.setAttribute("aria-label", `Save ${data.file} as ${format.toUpperCase()}`)
    button.onclick = () => {
      const plot = document.querySelector(`.st-key-${data.key} .js-plotly-plot`)
      const camera = plot?.querySelector('.modebar-btn[data-attr="toImage"], .modebar-btn[data-title^="Download plot"]')
      if (!camera) return
      plot._context.toImageButtonOptions = { format, filename: data.file, scale: format === "png" ? 2 : 1 }
      camera.click()
    }
    row.appendChild(button)
  }
}

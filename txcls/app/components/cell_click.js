// Reports which cell of a heat map was clicked; Streamlit itself reports clicks on points only.
export default function ({ data, setTriggerValue }) {
  const listen = (event) => {
    const plot = event.target.closest?.(`.st-key-${data.key}`)?.querySelector(".js-plotly-plot")
    if (!plot?.on) return
    if (plot.txclsClick) plot.removeListener("plotly_click", plot.txclsClick)
    plot.txclsClick = (click) => {
      const cell = click.points.find((point) => Array.isArray(point.pointNumber))?.pointNumber
      if (cell) setTriggerValue("cell", cell)
    }
    plot.on("plotly_click", plot.txclsClick)
  }
  document.addEventListener("pointerdown", listen, true)
  return () => document.removeEventListener("pointerdown", listen, true)
}

// Reports clicks on bars and on cells of a heat map (a chart's first trace); Streamlit only reports clicks on points.
export default function ({ data, setTriggerValue }) {
  const listen = (event) => {
    const plot = event.target.closest?.(`.st-key-${data.key}`)?.querySelector(".js-plotly-plot")
    if (!plot?.on) return
    if (plot.txclsClick) plot.removeListener("plotly_click", plot.txclsClick)
    plot.txclsClick = (click) => {
      for (const point of click.points) {
        const isCell = point.curveNumber === 0 && Array.isArray(point.pointNumber)
        const cell = isCell ? point.pointNumber : point.data.type === "bar" && [point.customdata, 0]
        if (cell) return setTriggerValue("cell", cell)
      }
    }
    plot.on("plotly_click", plot.txclsClick)
  }
  document.addEventListener("pointerdown", listen, true)
  return () => document.removeEventListener("pointerdown", listen, true)
}

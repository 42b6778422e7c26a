// Rows of words. They are redrawn only if the server sends rows that differ both from those it sent before and from
// those shown, so that a rerun of the page neither undoes a move nor takes the focus.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".bins")
  const sent = JSON.stringify(data)
  if (root.dataset.sent === sent) return
  root.dataset.sent = sent
  const shown = [...root.querySelectorAll(".bin-words")].map((row) => [row.dataset.name, ...wordsOf(row).map((word) => word.textContent)])
  if (JSON.stringify(shown) === JSON.stringify(data.rows.map(({ name, words }) => [name, ...words]))) return
  wordBins(root, { rows: data.rows, label: data.label, onMove: (rows) => setTriggerValue("moved", rows) })
}

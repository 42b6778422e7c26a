// The words of a lesson's question; drawn anew only for another question, so that a run does not undo a move.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".bins")
  const asked = JSON.stringify(data)
  if (root.dataset.asked === asked) return
  root.dataset.asked = asked
  wordBins(root, { rows: data.rows, label: data.label, onMove: (rows) => setTriggerValue("moved", rows) })
}

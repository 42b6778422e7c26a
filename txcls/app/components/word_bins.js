// Rows of words. They are redrawn only if the server sends rows that differ from the last ones sent, from those shown, and
// from the visitor's moves that it has not confirmed yet. A rerun of the page therefore does not undo a move or take the
// focus, even if the visitor moves words faster than the server responds.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".bins")
  const sent = JSON.stringify(data), words = JSON.stringify(data.rows.map((row) => row.words))
  root.moves ??= []
  markWords()
  if (root.dataset.sent === sent) {
    if (root.moves.at(-1) === words) root.moves = [] // moved and moved back
    return
  }
  root.dataset.sent = sent
  const confirmed = root.moves.indexOf(words)
  root.moves.splice(0, confirmed + 1)
  if (confirmed >= 0) return
  const shown = [...root.querySelectorAll(".bin-words")].map((row) => [row.dataset.name, ...wordsOf(row).map((word) => word.textContent)])
  if (JSON.stringify(shown) === JSON.stringify(data.rows.map(({ name, words }) => [name, ...words]))) return
  wordBins(root, { rows: data.rows, label: data.label, onMove })
  markWords()
  function markWords() {
    for (const word of root.querySelectorAll(".bin-words > *")) word.classList.toggle("marked", data.marked.includes(word.textContent))
  }
  function onMove(rows) {
    root.moves.push(JSON.stringify(rows))
    setTriggerValue("moved", rows)
  }
}

// Stores at most one press of PageDown or PageUp while nothing can be turned (lecture.js or its page is still loading);
// lecture.js handles it as soon as it can.
export default function ({ data }) {
  const lecture = (window.txclsLecture ??= { page: null, at: 0, asked: null })
  lecture.keeps = data.on
  if (lecture.keeper) return
  lecture.keeper = (event) => {
    const by = { PageDown: 1, PageUp: -1 }[event.key]
    if (!by || lecture.live || !lecture.keeps || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    event.stopImmediatePropagation()
    lecture.waiting = by
  }
  window.addEventListener("keydown", lecture.keeper, true)
}

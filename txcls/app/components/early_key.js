// PageDown or PageUp that is pressed while there is nothing yet to turn (lecture.js is not loaded, or its page is on its
// way) is kept, at most one, and taken by lecture.js as soon as it can.
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

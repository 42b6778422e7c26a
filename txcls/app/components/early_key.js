// Stores at most one press of PageDown or PageUp while lecture.js or its page is still loading; lecture.js handles it
// when it is ready.
export default function ({ data }) {
  const lecture = (window.txclsLecture ??= { page: null, at: 0, requestedFrom: null })
  lecture.storesKeys = data.on
  if (lecture.storeKey) return
  lecture.storeKey = (event) => {
    const offset = { PageDown: 1, PageUp: -1 }[event.key]
    const hasModifier = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey
    if (!offset || lecture.live || !lecture.storesKeys || hasModifier) return
    event.preventDefault()
    event.stopImmediatePropagation()
    lecture.storedTurn = offset
  }
  window.addEventListener("keydown", lecture.storeKey, true)
}

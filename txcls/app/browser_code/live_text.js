// Commits the text area a moment after the last key, by sending it the Ctrl+Enter that Streamlit commits on.
export default function ({ data }) {
  let timer
  const inside = (target) => target instanceof HTMLTextAreaElement && target.closest(`[class*="st-key-${data.key}"]`)
  const later = (event) => {
    const area = event.target
    if (!inside(area) || event.isComposing) return
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (!area.isConnected) return
      const key = { key: "Enter", code: "Enter", bubbles: true, cancelable: true }
      area.dispatchEvent(new KeyboardEvent("keydown", { ...key, ctrlKey: true }))
      area.dispatchEvent(new KeyboardEvent("keyup", key)) // or shortcuts would take it to be held down for ever
    }, data.pause)
  }
  window.txclsStopLiveText?.()
  document.addEventListener("input", later)
  document.addEventListener("compositionend", later)
  const stop = () => {
    clearTimeout(timer)
    document.removeEventListener("input", later)
    document.removeEventListener("compositionend", later)
  }
  window.txclsStopLiveText = stop
  // Whatever was typed before this listened, or a moment before it was started anew; nothing happens where nothing was.
  document.querySelectorAll(`[class*="st-key-${data.key}"] textarea`).forEach((target) => later({ target }))
  return stop
}

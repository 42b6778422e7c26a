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
      area.dispatchEvent(
        new KeyboardEvent("keydown", { key: "Enter", code: "Enter", ctrlKey: true, bubbles: true, cancelable: true })
      )
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

// Commits the text area a moment after the last key, by sending it the Ctrl+Enter that Streamlit commits on. What was
// typed just before the connection broke is typed again once the server is back.
export default function ({ data, setTriggerValue }) {
  let timer
  const inside = (target) => target instanceof HTMLTextAreaElement && target.closest(`[class*="st-key-${data.key}"]`)
  const commit = (area) => {
    const key = { key: "Enter", code: "Enter", bubbles: true, cancelable: true }
    area.dispatchEvent(new KeyboardEvent("keydown", { ...key, ctrlKey: true }))
    area.dispatchEvent(new KeyboardEvent("keyup", key)) // or shortcuts would take it to be held down for ever
  }
  const later = (event) => {
    const area = event.target
    if (!inside(area)) return
    if (event.type) window.txclsTyped = area.value // by a person, and not yet known to have arrived
    if (event.isComposing) return
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (area.isConnected && !area.disabled) commit(area)
    }, data.pause)
  }
  const app = document.querySelector("[data-test-connection-state]")
  const watch = new MutationObserver(() => {
    if (app.dataset.testConnectionState !== "CONNECTED") window.txclsWasAway = true
    else if (window.txclsWasAway) {
      window.txclsWasAway = false
      if (window.txclsTyped === undefined) return
      window.txclsTypeAgain = true
      setTriggerValue("back", Date.now()) // the server may be a new one, which knows of no page until it is asked for one
    }
  })
  const typeAgain = () => {
    const area = document.querySelector(`[class*="st-key-${data.key}"] textarea`)
    if (!area) return
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(area, window.txclsTyped)
    area.dispatchEvent(new Event("input", { bubbles: true }))
  }
  if (window.txclsTyped === data.text) window.txclsTyped = undefined // it has arrived
  if (window.txclsTypeAgain) {
    window.txclsTypeAgain = false
    if (window.txclsTyped !== undefined) setTimeout(typeAgain, data.pause) // once the box is drawn
  }
  window.txclsStopLiveText?.()
  document.addEventListener("input", later)
  document.addEventListener("compositionend", later)
  if (app) watch.observe(app, { attributes: true })
  const stop = () => {
    clearTimeout(timer)
    watch.disconnect()
    document.removeEventListener("input", later)
    document.removeEventListener("compositionend", later)
  }
  window.txclsStopLiveText = stop
  // Whatever was typed before this listened, or a moment before it was started anew; nothing happens where nothing was.
  document.querySelectorAll(`[class*="st-key-${data.key}"] textarea`).forEach((target) => later({ target }))
  return stop
}

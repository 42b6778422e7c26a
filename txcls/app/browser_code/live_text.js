// Commits the text area a moment after the last key, by sending it the Ctrl+Enter that Streamlit commits on. What was
// typed just before the connection broke is typed again once the server is back.
export default function ({ data }) {
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
  if (window.txclsTyped === data.text) window.txclsTyped = undefined // it has arrived
  const app = document.querySelector("[data-test-connection-state]")
  const watch = new MutationObserver(() => {
    const { testConnectionState: connection, testScriptState: script } = app.dataset
    if (connection !== "CONNECTED") window.txclsWasAway = true
    else if (window.txclsWasAway && script === "notRunning") {
      window.txclsWasAway = false
      setTimeout(typeAgain, data.pause) // once the page that the server has just sent is drawn
    }
  })
  const typeAgain = () => {
    const typed = window.txclsTyped
    const area = document.querySelector(`[class*="st-key-${data.key}"] textarea`)
    if (typed === undefined || !area || area.disabled) return
    const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set
    for (const text of [typed + " ", typed]) { // two changes, since the box may hold the text already, unsent
      set.call(area, text)
      area.dispatchEvent(new Event("input", { bubbles: true }))
    }
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

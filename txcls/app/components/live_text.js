// Submits a text area a moment after the last key press, by sending it the Ctrl+Enter on which Streamlit submits. Text
// typed just before the connection broke is entered again once the server is back. Texts are cut to one character more
// than the app reads, so that no browser sends megabytes.
export default function ({ data, setTriggerValue }) {
  let timer
  const inside = (target) => target instanceof HTMLTextAreaElement && target.closest(`[class*="st-key-${data.key}"]`)
  const commit = (area) => {
    const key = { key: "Enter", code: "Enter", bubbles: true, cancelable: true }
    area.dispatchEvent(new KeyboardEvent("keydown", { ...key, ctrlKey: true }))
    area.dispatchEvent(new KeyboardEvent("keyup", key)) // otherwise shortcuts would consider the key held down
  }
  const put = (area, text) => {
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(area, text)
    area.dispatchEvent(new Event("input", { bubbles: true }))
  }
  const later = (event) => {
    const area = event.target
    if (area instanceof HTMLTextAreaElement && area.value.length > data.most + 1) {
      const kept = Array.from(area.value.slice(0, 2 * (data.most + 1))).slice(0, data.most + 1).join("")
      if (kept.length < area.value.length) return put(area, kept)
    }
    if (!inside(area)) return
    // Kept until the server is known to have the text. Without an event, either the text was typed before this listener
    // existed, or the page has not yet drawn the server's text; only a focused box can have been typed in.
    const typed = event.type || (area === document.activeElement && area.value !== data.text)
    if (typed) window.txclsTyped = area.value
    if (event.isComposing) return
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (area.isConnected && !area.disabled) commit(area)
    }, data.pause)
  }
  const app = document.querySelector("[data-test-connection-state]")
  const watch = new MutationObserver(() => {
    const { testConnectionState: connection, testScriptState: script } = app.dataset
    if (connection !== "CONNECTED") window.txclsBack = "away"
    else if (window.txclsBack === "away") {
      window.txclsBack = "asked"
      // A restarted server does not know the page until it is requested.
      if (window.txclsTyped !== undefined) setTriggerValue("back", Date.now())
    } else if (window.txclsBack === "asked" && script === "running") window.txclsBack = "drawn"
    else if (window.txclsBack === "drawn" && script === "notRunning") {
      window.txclsBack = undefined
      if (window.txclsTyped !== undefined) setTimeout(typeAgain, data.pause)
    }
  })
  const box = () => document.querySelector(`[class*="st-key-${data.key}"] textarea`)
  const typeAgain = () => {
    const area = box()
    if (area) put(area, window.txclsTyped)
  }
  const arrived = () => {
    // A box with the server's text may have received it from a click or a link, which is later than the typing; but a
    // server that has just come back may have put its older text there.
    const replaced = !window.txclsBack && box()?.value === data.text
    if (window.txclsTyped === data.text || replaced) window.txclsTyped = undefined
  }
  const soon = setTimeout(arrived, data.pause) // once the box is drawn
  window.txclsStopLiveText?.()
  document.addEventListener("input", later)
  document.addEventListener("compositionend", later)
  if (app) watch.observe(app, { attributes: true })
  const stop = () => {
    clearTimeout(timer)
    clearTimeout(soon)
    watch.disconnect()
    document.removeEventListener("input", later)
    document.removeEventListener("compositionend", later)
  }
  window.txclsStopLiveText = stop
  // Text typed before this listener existed, or just before a restart; does nothing if there is none.
  document.querySelectorAll(`[class*="st-key-${data.key}"] textarea`).forEach((target) => later({ target }))
  return stop
}

// Submits a text area a moment after the last key press, by sending it Ctrl+Enter. Text typed just before the connection
// broke is entered again when the server is back. In lecture mode, text typed in another window is entered here too. Texts are cut to one character more than the app reads, so that no
// browser sends megabytes.
export default function ({ data, setTriggerValue }) {
  let timer
  const isTextBox = (target) => target instanceof HTMLTextAreaElement && target.closest(`[class*="st-key-${data.key}"]`)
  const submit = (area) => {
    const key = { key: "Enter", code: "Enter", bubbles: true, cancelable: true }
    area.dispatchEvent(new KeyboardEvent("keydown", { ...key, ctrlKey: true }))
    area.dispatchEvent(new KeyboardEvent("keyup", key)) // otherwise shortcuts would consider the key held down
  }
  const setText = (area, text) => {
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(area, text)
    area.dispatchEvent(new Event("input", { bubbles: true }))
  }
  const changed = (event) => {
    const area = event.target
    if (area instanceof HTMLTextAreaElement && area.value.length > data.max + 1) {
      const start = Array.from(area.value.slice(0, 2 * (data.max + 1))).slice(0, data.max + 1).join("")
      if (start.length < area.value.length) return setText(area, start)
    }
    if (!isTextBox(area)) return
    // Stored until the server is known to have the text. Without an event, either the text was typed before this listener
    // existed, or the page has not yet drawn the server's text; only a focused box can contain typed text.
    const isTyped = event.type || (area === document.activeElement && area.value !== data.text)
    if (isTyped) window.txclsTyped = area.value
    if (event.isTrusted) windows?.postMessage(area.value)
    if (event.isComposing) return
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (area.isConnected && !area.disabled) submit(area)
    }, data.pause)
  }
  const windows = data.follows ? new BroadcastChannel("txcls-text") : null
  if (windows) windows.onmessage = ({ data: text }) => box() && setText(box(), text)
  const app = document.querySelector("[data-test-connection-state]")
  const watch = new MutationObserver(() => {
    const { testConnectionState: connection, testScriptState: script } = app.dataset
    if (connection !== "CONNECTED") window.txclsBack = "away"
    else if (window.txclsBack === "away") {
      window.txclsBack = "asked"
      // A restarted server has no state for this page until the browser requests a rerun.
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
    if (area) setText(area, window.txclsTyped)
  }
  const checkArrival = () => {
    // If the box has the server's text, a click or a link has replaced the typed text; but a server that has just come
    // back may have drawn its older text there.
    const replaced = !window.txclsBack && box()?.value === data.text
    if (window.txclsTyped === data.text || replaced) window.txclsTyped = undefined
  }
  const arrivalTimer = setTimeout(checkArrival, data.pause) // once the box is drawn
  window.txclsStopLiveText?.()
  document.addEventListener("input", changed)
  document.addEventListener("compositionend", changed)
  if (app) watch.observe(app, { attributes: true })
  const stop = () => {
    clearTimeout(timer)
    clearTimeout(arrivalTimer)
    watch.disconnect()
    windows?.close()
    document.removeEventListener("input", changed)
    document.removeEventListener("compositionend", changed)
  }
  window.txclsStopLiveText = stop
  // Text typed before this listener existed, or just before a restart; does nothing if there is none.
  document.querySelectorAll(`[class*="st-key-${data.key}"] textarea`).forEach((target) => changed({ target }))
  return stop
}

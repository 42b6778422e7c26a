// A row of tokens. Those with a number are buttons that send it; arrow keys move between them (a single tab stop).
export default function ({ data, parentElement, setTriggerValue }) {
  const strip = parentElement.querySelector(".strip")
  strip.setAttribute("aria-label", data.label)
  // Elements are reused between runs to keep the focus.
  data.tokens.forEach((token, index) => {
    const tag = token.number === null ? "SPAN" : "BUTTON"
    let element = strip.children[index]
    if (element?.tagName !== tag) {
      const created = document.createElement(tag)
      element ? element.replaceWith(created) : strip.append(created)
      element = created
    }
    element.textContent = token.text
    element.title = token.title
    element.className = token.kind
    element.style.setProperty("--shade", token.shade)
    if (tag === "SPAN") return
    element.type = "button"
    element.setAttribute("aria-pressed", token.pressed)
    element.onclick = () => setTriggerValue("chosen", token.number)
    element.onfocus = () => stopAt(element)
  })
  while (strip.children.length > data.tokens.length) strip.lastChild.remove()
  const buttons = [...strip.querySelectorAll("button")]
  const stopAt = (stop) => buttons.forEach((button) => (button.tabIndex = button === stop ? 0 : -1))
  const focused = parentElement.activeElement ?? strip.getRootNode().activeElement
  stopAt(buttons.find((b) => b === focused) ?? buttons.find((b) => b.ariaPressed === "true") ?? buttons[0])
  strip.onkeydown = (event) => {
    const at = buttons.indexOf(event.target)
    const back = getComputedStyle(strip).direction === "rtl" ? "ArrowRight" : "ArrowLeft"
    const step = { ArrowLeft: 1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1, Home: -at, End: buttons.length - 1 - at }
    if (at < 0 || !(event.key in step)) return
    event.preventDefault()
    const move = event.key === back ? -1 : step[event.key]
    buttons[Math.min(Math.max(at + move, 0), buttons.length - 1)].focus()
  }
}

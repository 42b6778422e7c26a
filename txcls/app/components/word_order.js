// Words in a row that can be dragged, or moved with Shift and an arrow key; sends their indices in the new order.
export default function ({ data, parentElement, setTriggerValue }) {
  const strip = parentElement.querySelector(".strip")
  const said = parentElement.querySelector(".said")
  strip.setAttribute("aria-label", data.label)
  const words = () => [...strip.children]
  const order = () => words().map((word) => Number(word.dataset.number))
  const stopAt = (stop) => words().forEach((word) => (word.tabIndex = word === stop ? 0 : -1))
  const send = (before) => {
    if (order().join() !== before.join()) setTriggerValue("order", order())
  }

  // Elements are reused between runs and put in order, so that the focus stays on its word.
  const known = new Map(words().map((word) => [`${word.dataset.number} ${word.textContent}`, word]))
  const wanted = data.words.map(({ number, text }) => {
    const word = known.get(`${number} ${text}`) ?? document.createElement("button")
    known.delete(`${number} ${text}`)
    word.type = "button"
    word.textContent = text
    word.className = ""
    word.dataset.number = number
    return word
  })
  known.forEach((word) => word.remove())
  if (words().some((word, place) => word !== wanted[place]) || words().length !== wanted.length) {
    const focused = strip.getRootNode().activeElement
    strip.replaceChildren(...wanted)
    if (wanted.includes(focused)) focused.focus()
  }
  stopAt(words().find((word) => word === strip.getRootNode().activeElement) ?? wanted[0])

  const tell = (word) => (said.textContent = `${word.textContent}: place ${words().indexOf(word) + 1} of ${wanted.length}`)
  const rightToLeft = () => getComputedStyle(strip).direction === "rtl"

  let drag = null
  const over = ({ clientX, clientY }) =>
    words().find((word) => {
      const box = word.getBoundingClientRect()
      return clientX >= box.left && clientX <= box.right && clientY >= box.top && clientY <= box.bottom
    })
  strip.onpointerdown = (event) => {
    const word = event.target.closest("button")
    if (!word || event.button) return
    drag = { word, before: order(), x: event.clientX, y: event.clientY, moved: false }
    stopAt(word)
    word.focus()
    strip.setPointerCapture(event.pointerId)
  }
  strip.onpointermove = (event) => {
    if (!drag) return
    if (!drag.moved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 4) return
    drag.moved = true
    drag.word.classList.add("dragged")
    const other = over(event)
    if (!other || other === drag.word) return
    const box = other.getBoundingClientRect()
    const second = event.clientX > box.left + box.width / 2
    const place = second === rightToLeft() ? other : other.nextSibling // before or after the word under the pointer
    if (place !== drag.word && place !== drag.word.nextSibling) strip.insertBefore(drag.word, place)
  }
  const drop = (keep) => {
    if (!drag) return
    const { word, before } = drag
    drag = null
    word.classList.remove("dragged")
    if (!keep) strip.replaceChildren(...before.map((number) => wanted.find((w) => Number(w.dataset.number) === number)))
    word.focus()
    tell(word)
    send(before)
  }
  strip.onpointerup = () => drop(true)
  strip.onpointercancel = () => drop(false)

  strip.onkeydown = (event) => {
    if (event.key === "Escape") return drop(false)
    const word = event.target.closest("button")
    const step = { ArrowLeft: rightToLeft() ? 1 : -1, ArrowRight: rightToLeft() ? -1 : 1 }[event.key]
    if (!word || !step) return
    event.preventDefault()
    const other = words()[words().indexOf(word) + step]
    if (!other) return
    if (event.shiftKey) {
      const before = order()
      strip.insertBefore(word, step > 0 ? other.nextSibling : other)
      word.focus()
      tell(word)
      send(before)
    } else {
      stopAt(other)
      other.focus()
    }
  }
}

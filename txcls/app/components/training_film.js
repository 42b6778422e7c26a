// A training run as a film: slider and play button below the curves; bars, heads and class lens of the selected
// snapshot. All numbers are sent at once, so the slider and Play need no server; the URL follows the training step.
const PAUSE_MS = 600 // between two snapshots during playback
const MAX_CODE = 2 ** 16 - 1 // represents an attention weight of 1
// Controls elsewhere on the page handle these keys themselves.
const CONTROLS = "a, button, input, select, summary, [role=slider], [role=tab], [role=radio], [role=option], [role=menuitem]"
const TYPING = "textarea, input:not([type=range], [type=checkbox]), select, [contenteditable], [role=listbox] *"
const MOVES = { ArrowLeft: -1, ArrowDown: -1, PageUp: -1, ArrowRight: 1, ArrowUp: 1, PageDown: 1 }
const [LEAST_LABEL_PX, LABEL_PX] = [10, 16] // height of a token's name beside a map
const MAX_IN_A_ROW = 4 // maps
const [TICK_PX, DIGIT_PX] = [44, 7.5] // least distance between two labelled steps, and width of a digit
const SPLITS = { train: "training", validation: "validation" }
const PADDING = { left: 52, right: 8, top: 18, bottom: 22 } // around each of the curves

export default function ({ data, parentElement }) {
  const section = parentElement.querySelector(".film")
  section.film ??= new Film(section)
  return section.film.open(data)
}

const grouped = (number) => number.toLocaleString("en")
const capital = (text) => text[0].toUpperCase() + text.slice(1)

class Film {
  constructor(section) {
    Object.assign(this, { section, data: null, at: 0, answered: new Set(), verdict: "", enlarged: null, timer: 0 })
    this.slider = this.find("input[type=range]")
    this.play = this.find(".play")
    this.predictFirst = this.find(".first input")
    this.slider.oninput = () => this.jump(Number(this.slider.value))
    this.play.onclick = () => this.togglePlay()
    this.predictFirst.onchange = () => {
      window.txclsPredictFirst = this.predictFirst.checked
      this.verdict = ""
      this.show()
    }
    this.find(".options").onclick = (event) => this.guess(event.target.dataset.guess)
    this.find(".curves").onclick = (event) => this.jump(this.curves.nearest(event.clientX))
    section.append(
      saveButtons(() => ({
        root: section,
        file: `${this.data.name}-step-${this.data.steps[this.at]}`,
        label: this.slider.getAttribute("aria-valuetext"),
        skip: ".play, .first, .ask, input, .save-picture",
      })),
    )
  }

  find(selector) {
    return this.section.querySelector(selector)
  }

  /** Show the server's numbers; return a function that removes the listeners of this call only. */
  open(data) {
    this.stop?.()
    const isReopened = this.data?.opened !== data.opened
    if (isReopened) this.at = data.at
    if (isReopened || this.data.tokens.join(" ") !== data.tokens.join(" ")) {
      this.answered = new Set()
      this.verdict = ""
    }
    this.data = data
    this.last = data.steps.length - 1
    this.at = Math.min(this.at, this.last)
    this.predictFirst.checked = Boolean(window.txclsPredictFirst)
    this.slider.max = this.last
    this.curves = new Curves(this.find(".curves"), data)
    this.bars = drawBars(this.find(".classes ol"), data)
    this.maps = new Maps(this)
    const pressed = (event) => this.pressed(event)
    document.addEventListener("keydown", pressed)
    const resized = new ResizeObserver(() => {
      this.curves.draw()
      this.curves.move(this.at, !this.predictFirst.checked)
      this.maps.nameTokens()
    })
    resized.observe(this.find(".curves"))
    this.show()
    this.stop = () => {
      this.stopPlaying()
      resized.disconnect()
      document.removeEventListener("keydown", pressed)
    }
    return this.stop
  }

  answer(n) {
    return this.data.classes[this.data.answers[n]]
  }

  answerWithProbability(n) {
    return `${this.answer(n)}, ${percent(this.data.probabilities[n][this.data.answers[n]])}`
  }

  step(n) {
    return `step ${grouped(this.data.steps[n])} of ${grouped(this.data.steps[this.last])}`
  }

  get isAsked() {
    return this.predictFirst.checked && this.data.asked.includes(this.at) && !this.answered.has(this.at)
  }

  show() {
    const { at: n, data, isAsked } = this
    this.slider.value = n
    const answer = isAsked ? "predict first" : this.answerWithProbability(n)
    this.slider.setAttribute("aria-valuetext", `${this.step(n)}: ${answer}`)
    const step = element("b", { text: grouped(data.steps[n]) })
    this.find(".where").replaceChildren("Step ", step, ` of ${grouped(data.steps[this.last])}`)
    this.find(".finding").replaceChildren(element("span", { text: data.question, className: "question" }), ...this.finding())
    this.find(".figures").replaceChildren(...metricLines(data, n).map((line) => element("div", { text: line })))
    this.curves.move(n, !this.predictFirst.checked)
    this.find(".ask").hidden = !isAsked
    this.find(".state").classList.toggle("covered", isAsked)
    this.find(".state").inert = isAsked
    if (isAsked) this.ask()
    else {
      this.bars.show(n)
      this.maps.show(n)
      showLens(this.find(".lens ol"), data, n)
    }
    this.find(".verdict").textContent = this.verdict
    this.play.textContent = this.timer ? "❚❚ Pause" : n === this.last ? "↺ Play again" : "▶ Play"
    updateAddress(data.steps[n], data.steps[data.default])
    Object.assign(window.txclsLecture ?? {}, { place: `${n + 1} / ${this.last + 1}` }).showPlace?.() // in lecture.js
  }

  /** How the prediction changed, as strings and elements; if the visitor predicts first, only a hint. */
  finding() {
    const { flips, steps, answers, probabilities } = this.data, n = flips.length
    if (this.predictFirst.checked) return ["Press Play to watch the model train."]
    const [first, last] = [0, this.last].map((at) => element("b", { text: this.answer(at) }))
    if (!n) return ["The answer is ", first, " from the start."]
    return ["The answer starts as ", first, ` (${percent(probabilities[0][answers[0]])}), changes ${n === 1 ? "once" : `${n} times`}, ` +
      `and from step ${grouped(steps[flips[n - 1]])} on is `, last, "."]
  }

  ask() {
    this.stopPlaying()
    this.verdict = ""
    const final = this.answer(this.last)
    this.find(".ask p").textContent =
      `${capital(this.step(this.at - 1))}: ${this.answer(this.at - 1)}. At the end of training: ${final}. ` +
      `Does the model predict ${final} at step ${grouped(this.data.steps[this.at])}?`
  }

  guess(guessed) {
    if (!guessed) return
    const isFinal = this.data.answers[this.at] === this.data.answers[this.last]
    this.answered.add(this.at)
    this.verdict =
      `${(guessed === "true") === isFinal ? "✓ Right" : "✗ Wrong"}: at ${this.step(this.at)} the model predicts ` +
      `${this.answerWithProbability(this.at)}.`
    this.show()
    this.play.focus()
  }

  go(n) {
    this.at = Math.min(Math.max(n, 0), this.last)
    this.verdict = ""
    this.show()
  }

  jump(n) {
    this.stopPlaying()
    this.go(n)
  }

  stopPlaying() {
    clearInterval(this.timer)
    this.timer = 0
  }

  togglePlay() {
    if (this.timer) this.stopPlaying()
    else {
      if (this.at === this.last) this.at = 0
      this.timer = setInterval(() => {
        if (this.at + 1 >= this.last) this.stopPlaying()
        this.go(this.at + 1)
      }, PAUSE_MS)
    }
    this.show()
  }

  pressed(event) {
    const target = event.composedPath()[0]
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.defaultPrevented) return
    const isInside = this.section.contains(target)
    const isElsewhere = !isInside && target.closest?.(CONTROLS)
    const isTyping = target.matches?.(TYPING)
    const isPageKey = event.key.startsWith("Page")
    if (event.key === " ") {
      if (isTyping || target.closest?.("button, a, summary, input[type=checkbox], [role=button], [role=tab]")) return
      this.togglePlay()
    } else if (event.key === "Escape" && isInside && this.enlarged) this.maps.enlarge(null)
    else if (event.key in MOVES && !isTyping && (isPageKey || !isElsewhere)) {
      if (!isPageKey && event.key.match(/Up|Down/) && target !== this.slider) return
      if (isPageKey && this.at === (MOVES[event.key] < 0 ? 0 : this.last)) {
        if (target === this.slider) event.preventDefault() // otherwise the slider would move too
        return // elsewhere, these keys turn the page
      }
      this.jump(this.at + MOVES[event.key])
    } else return
    event.preventDefault()
  }
}

/** Loss and accuracy of a snapshot, in words; before training, chance accuracy replaces the training values. */
function metricLines(data, n) {
  const lines = ["train", "validation"].map((split) => [split, data[`${split}_loss`][n], data[`${split}_accuracy`][n]])
    .filter(([split, loss]) => loss !== null && (n > 0 || split !== "train"))
    .map(([split, loss, accuracy]) => `${SPLITS[split]}: accuracy ${percent(accuracy)}, loss ${loss.toFixed(2)}`)
  return n ? lines : [...lines, `guessing among ${data.n_classes} classes: ${percent(1 / data.n_classes)}`]
}

/** Loss and accuracy of all snapshots, with a line at the selected one; side by side, or one above the other on a phone. */
class Curves {
  constructor(svg, data) {
    Object.assign(this, { svg, data, last: data.steps.length - 1 })
    svg.setAttribute(
      "aria-label",
      `Loss and accuracy of ${this.last + 1} snapshots from step 0 to step ${data.steps[this.last]}. Validation loss goes from ` +
        `${data.validation_loss[0].toFixed(2)} to ${data.validation_loss[this.last].toFixed(2)}, validation accuracy from ` +
        `${percent(data.validation_accuracy[0])} to ${percent(data.validation_accuracy[this.last])}.`,
    )
    this.draw()
  }

  draw() {
    const { svg, data } = this
    const [width, height] = [svg.clientWidth, svg.clientHeight] // unlike the on-screen size, without lecture mode's zoom
    const { left, right, top, bottom } = PADDING
    this.isWide = width > 640
    const one = this.isWide ? (width - 2 * (left + right)) / 2 : width - left - right
    const high = this.isWide ? height - top - bottom : (height - 2 * top - 2 * bottom) / 2
    const panel = (column, row) => ({ x: left + column * (one + left + right), y: top + row * (high + top + bottom), width: one, height: high })
    this.width = width
    this.panels = this.isWide ? [panel(0, 0), panel(1, 0)] : [panel(0, 0), panel(0, 1)]
    this.lines = this.panels.map(({ y, height }) => svgElement("line", { class: "head", y1: y, y2: y + height + 4 }))
    svg.replaceChildren(...this.panels.flatMap((panel, index) => this.panel(["loss", "accuracy"][index], panel)), ...this.legend(), ...this.lines)
  }

  /** The horizontal position of a snapshot in a panel. */
  x(n, panel) {
    return panel.x + (panel.width * n) / this.last
  }

  /** Axes and curves of one metric. */
  panel(metric, panel) {
    const { data, last } = this
    const splits = ["train", "validation"].map((split) => [split, data[`${split}_${metric}`]])
    const max = metric === "accuracy" ? 1 : Math.max(...splits.flatMap(([, values]) => values))
    const bottom = panel.y + panel.height
    const y = (value) => bottom - (panel.height * value) / max
    const axis = [0, max].flatMap((value) => [
      svgElement("line", { class: "axis", x1: panel.x, x2: panel.x + panel.width, y1: y(value), y2: y(value) }),
      svgElement(
        "text",
        { x: panel.x - 8, y: y(value) + 4, "text-anchor": "end" },
        metric === "accuracy" ? `${100 * value}\u00a0%` : value.toFixed(value ? 1 : 0),
      ),
    ])
    const curves = splits.map(([split, values]) => {
      const points = values.map((value, n) => (value === null ? "" : `${this.x(n, panel)},${y(value)}`)).filter(Boolean)
      return svgElement("polyline", { class: split, points: points.join(" ") })
    })
    const title = svgElement("text", { x: panel.x + 6, y: panel.y - 5, "font-weight": 650 }, metric)
    const steps = this.labelledSteps(panel).map((n) =>
      svgElement("text", { x: this.x(n, panel), y: bottom + 17, "text-anchor": n === last ? "end" : "middle" }, grouped(data.steps[n])),
    )
    steps.push(svgElement("text", { x: panel.x - 12, y: bottom + 17, "text-anchor": "end" }, "step"))
    if (metric === "accuracy") {
      steps.push(svgElement("text", { x: panel.x + panel.width, y: bottom - 6, "text-anchor": "end" }, "steps not to scale"))
    }
    return [...axis, ...curves, title, ...steps, ...data.flips.map((n) => triangle(this.x(n, panel), bottom + 3))]
  }

  /** The snapshots whose steps are labelled, as many as fit: first, last, changes of the prediction, then the others. */
  labelledSteps(panel) {
    const labelled = [0, this.last]
    const { flips, steps } = this.data
    const width = (n) => DIGIT_PX * (grouped(steps[n]).length + 1)
    const room = (n, other) => (flips.includes(n) ? (width(n) + width(other)) / 2 : TICK_PX)
    for (const n of [...flips.toReversed(), ...steps.keys()])
      if (labelled.every((other) => Math.abs(this.x(n, panel) - this.x(other, panel)) >= room(n, other))) labelled.push(n)
    return labelled
  }

  legend() {
    const [{ x, y }, { x: left, y: top }] = this.panels
    const place = (index) => x + 56 + 112 * index
    const lines = [["validation", "validation"], ["train", "training"]].flatMap(([name, split], index) => [
      svgElement("line", { class: name, x1: place(index), x2: place(index) + 22, y1: y - 9, y2: y - 9 }),
      svgElement("text", { x: place(index) + 28, y: y - 5 }, split),
    ])
    if (!this.data.flips.length) return lines
    const text = svgElement("text", { class: "flips", x: left + 98, y: top - 5 }, "the prediction changes")
    return [...lines, triangle(left + 88, top - 5), text]
  }

  move(n, withFlips) {
    this.lines.forEach((line, index) => {
      line.setAttribute("x1", this.x(n, this.panels[index]))
      line.setAttribute("x2", this.x(n, this.panels[index]))
    })
    for (const mark of this.svg.querySelectorAll(".flips")) mark.style.display = withFlips ? "" : "none"
  }

  /** The snapshot nearest to a horizontal position on the screen. */
  nearest(clientX) {
    const box = this.svg.getBoundingClientRect()
    const x = ((clientX - box.left) * this.width) / box.width
    const panel = this.isWide && x > this.panels[1].x - PADDING.left / 2 ? this.panels[1] : this.panels[0]
    return Math.round(((x - panel.x) / panel.width) * this.last)
  }
}

const triangle = (x, y) => svgElement("path", { class: "flips flip", d: `M${x - 5} ${y}h10l-5 -8z` })

function drawBars(list, data) {
  const n_rows = Math.min(data.rows, data.classes.length)
  const last = data.answers[data.answers.length - 1]
  const rows = data.classes.map((name, index) => row(name + (index === last ? " ★" : ""), name, data.colours[index]))
  const rest = row(`all others`, "all others")
  rest.classList.add("rest")
  list.replaceChildren(...rows, ...(data.has_others ? [rest] : []))
  list.style.height = `calc(var(--row) * ${n_rows + data.has_others})`
  list.parentElement.querySelector(".note").textContent = "★ the prediction at the end of training"

  function row(words, title, colour = "") {
    const item = element("li")
    const name = element("span", { text: words, className: "name" })
    name.title = title
    name.dir = "auto"
    const track = element("span", { className: "track" })
    const bar = element("div", { className: "bar" })
    bar.style.background = colour
    track.append(bar)
    item.append(name, track, element("span", { className: "value" }))
    return item
  }
  const set = (item, rank, value) => {
    item.hidden = false
    item.style.top = `calc(var(--row) * ${rank})`
    item.querySelector(".bar").style.width = `${100 * value}%`
    item.querySelector(".value").textContent = percent(value)
  }
  return {
    show(n) {
      const values = data.probabilities[n]
      const order = values.map((_, index) => index).sort((a, b) => values[b] - values[a])
      let remainder = 1
      order.forEach((index, rank) => {
        const item = rows[index]
        item.classList.toggle("top-class", index === data.answers[n])
        if (rank >= n_rows) item.hidden = true
        else {
          set(item, rank, values[index])
          remainder -= values[index]
        }
      })
      if (data.has_others) set(rest, n_rows, Math.max(remainder, 0))
    },
  }
}

/** The attention maps of all heads, or the enlarged map of one head with labelled tokens. */
class Maps {
  constructor(film) {
    const { data } = film
    const [, nLayers, nHeads, nTokens] = data.shape
    Object.assign(this, { film, data, nLayers, nHeads, nTokens, attention: decodeWeights(data.attention) })
    this.grid = film.find(".maps")
    this.large = film.find(".large")
    this.cell = film.find(".cell")
    const state = film.find(".state")
    state.style.setProperty("--heads", nHeads)
    state.style.setProperty("--layers", nLayers)
    state.classList.toggle("few", nLayers * nHeads <= MAX_IN_A_ROW)
    this.large.style.setProperty("--tokens", nTokens)
    drawScale(film.find(".scale"))
    this.cell.textContent = "rows attend to bright columns. Click to enlarge."
    this.small = Array.from({ length: nLayers * nHeads }, (_, index) => {
      const head = [Math.floor(index / nHeads), index % nHeads]
      const canvas = this.canvas(head)
      const name = element("b", { text: `head ${head.map((n) => n + 1).join(".")}` })
      const box = button({ onClick: () => this.enlarge(head) }, name, canvas, this.axis("keys"))
      box.classList.toggle("last", head[0] === nLayers - 1)
      return { head, box, canvas }
    })
    this.grid.replaceChildren(...this.small.flatMap(({ head, box }) => (head[1] ? [box] : [this.axis("queries"), box])))
    this.build()
  }

  weights(n, [layer, head]) {
    const size = this.nTokens * this.nTokens
    const index = (n * this.nLayers + layer) * this.nHeads + head
    return this.attention.subarray(index * size, (index + 1) * size)
  }

  /** An empty map; the weight of the cell under the pointer is shown in `.cell`. */
  canvas(head) {
    const { nTokens } = this
    const canvas = element("canvas")
    canvas.width = canvas.height = nTokens
    canvas.onpointermove = (event) => {
      const box = canvas.getBoundingClientRect()
      const [row, column] = [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width].map(
        (share) => Math.min(Math.max(Math.floor(share * nTokens), 0), nTokens - 1),
      )
      this.cell.textContent = `${headName(head)}: ${this.pair(this.weights(this.film.at, head), row * nTokens + column)}`
    }
    return canvas
  }

  pair(weights, index) {
    const { data, nTokens } = this
    return `${data.tokens[Math.floor(index / nTokens)]} → ${data.tokens[index % nTokens]} ${weights[index].toFixed(2)}`
  }

  /** Description of a head: its name and largest weight. */
  description(head, weights) {
    const largest = weights.reduce((best, value, index) => (value > weights[best] ? index : best), 0)
    return `${headName(head)}; largest weight: ${this.pair(weights, largest)}`
  }

  enlarge(head) {
    const before = this.film.enlarged
    this.film.enlarged = head
    this.build()
    this.show(this.film.at)
    const shrunk = this.small.find((map) => String(map.head) === String(before))
    ;(head ? this.large.querySelector("button") : shrunk?.box)?.focus()
  }

  /** Draw either the grid of all heads, or the enlarged head with its axes. */
  build() {
    const { film, data, large } = this
    if (film.enlarged && (film.enlarged[0] >= this.nLayers || film.enlarged[1] >= this.nHeads)) film.enlarged = null
    this.grid.hidden = Boolean(film.enlarged)
    large.hidden = !film.enlarged
    if (!film.enlarged) {
      large.replaceChildren()
      return this.nameTokens()
    }
    const back = button({ text: "◀ All heads", onClick: () => this.enlarge(null) })
    const bar = element("div", { className: "bar-of-large" }, back, element("b", { text: headName(film.enlarged) }))
    const canvas = this.canvas(film.enlarged)
    canvas.setAttribute("role", "img")
    large.replaceChildren(bar, this.axis("queries"), canvas, this.axis("keys"))
    this.nameTokens()
  }

  /** The tokens beside or below a map. */
  axis(className) {
    const names = element("div", { className }, ...this.data.tokens.map(() => element("span")))
    names.setAttribute("aria-hidden", "true")
    return names
  }

  /** Label all tokens in a type that fits; if it would be too small, as many as fit, but none beside the small maps. */
  nameTokens() {
    const { film, grid, large } = this
    const height = (film.enlarged ? large : grid).querySelector("canvas").clientHeight || 300
    const size = Math.min(LABEL_PX, height / this.nTokens)
    const every = size < LEAST_LABEL_PX ? Math.ceil((LEAST_LABEL_PX * this.nTokens) / height) : 1
    const areNamed = film.enlarged || every === 1
    for (const axis of film.section.querySelectorAll(".queries, .keys")) {
      axis.style.fontSize = `${Math.max(size, LEAST_LABEL_PX)}px`
      this.data.tokens.forEach((token, index) => (axis.children[index].textContent = areNamed && index % every === 0 ? token : ""))
    }
    for (const axis of grid.querySelectorAll(".queries"))
      Object.assign(axis.style, { height: `${height}px`, marginTop: `${axis.nextSibling.querySelector("canvas").offsetTop - axis.nextSibling.offsetTop}px` })
  }

  show(n) {
    const { enlarged } = this.film
    const paint = (canvas, weights) =>
      canvas.getContext("2d").putImageData(heatMap(weights, this.nTokens, this.nTokens), 0, 0)
    for (const { head, box, canvas } of this.small) {
      const weights = this.weights(n, head)
      if (!enlarged) paint(canvas, weights)
      box.setAttribute("aria-label", `${this.description(head, weights)}; enlarge`)
    }
    if (!enlarged) return
    const canvas = this.large.querySelector("canvas")
    paint(canvas, this.weights(n, enlarged))
    canvas.setAttribute("aria-label", `Attention of ${this.description(enlarged, this.weights(n, enlarged))}`)
  }
}

const headName = ([layer, head]) => `Head ${layer + 1}.${head + 1}`

function showLens(list, data, n) {
  const rows = data.states.map((state, index) => {
    const item = element("li")
    const value = data.lens[n][index]
    const name = element("span", { text: data.classes[data.lens_answers[n][index]], className: "name" })
    name.dir = "auto"
    const track = element("span", { className: "track" })
    const bar = element("div", { className: "bar" })
    bar.style.width = `${100 * value}%`
    track.append(bar)
    item.append(element("span", { text: state, className: "after" }), name, element("span", { text: percent(value), className: "value" }), track)
    item.classList.toggle("top-class", data.lens_answers[n][index] === data.answers[data.answers.length - 1])
    return item
  })
  list.replaceChildren(...rows)
}

let addressTimer
/** Write the step into the URL, unless it is the default of a URL without a step. */
function updateAddress(step, defaultStep) {
  clearTimeout(addressTimer)
  addressTimer = setTimeout(() => {
    const address = new URL(window.location.href)
    if (step !== defaultStep) address.searchParams.set("training_step", step)
    else address.searchParams.delete("training_step")
    if (address.href !== window.location.href) history.replaceState(history.state, "", address)
  }, 200)
}

/** All attention weights, decoded from base64 of 16-bit integers. */
function decodeWeights(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  return Float32Array.from(new Uint16Array(bytes.buffer), (value) => value / MAX_CODE)
}

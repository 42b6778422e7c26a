// A training as a film: slider and play button under the curves; bars, heads and class lens of the chosen state. All
// numbers come at once, so that sliding and playing never ask the server; the step is written into the address.
const PAUSE_MS = 600 // between two states while it plays
const MOST = 2 ** 16 - 1 // what a weight of 1 is sent as
// Keys on these, elsewhere on the page, are theirs.
const CONTROLS = "a, button, input, select, summary, [role=slider], [role=tab], [role=radio], [role=option], [role=menuitem]"
const TYPING = "textarea, input:not([type=range], [type=checkbox]), select, [contenteditable], [role=listbox] *"
const LABEL_PX = 14 // height of a token's name beside an enlarged map
const PADDING = { left: 52, right: 8, top: 16, between: 24, bottom: 22 }

export default function ({ data, parentElement }) {
  const section = parentElement.querySelector(".film")
  section.film?.stop()
  if (!section.film) {
    section.film = { data: null, at: 0, seen: new Set(), large: null, timer: 0 }
    section.append(
      saveButtons(() => ({
        root: section,
        file: `${section.film.data.name}-step-${section.film.data.steps[section.film.at]}`,
        label: section.querySelector("input[type=range]").getAttribute("aria-valuetext"),
        skip: ".play, .first, .ask, input, .save-picture",
      })),
    )
  }
  return start(section, section.film, data)
}

function start(section, film, data) {
  const find = (selector) => section.querySelector(selector)
  const slider = find("input[type=range]")
  const play = find(".play")
  const first = find(".first input")
  const state = find(".state")
  const last = data.steps.length - 1
  if (film.data?.opened !== data.opened) film.at = data.at
  if (film.data?.opened !== data.opened || film.data?.tokens.join(" ") !== data.tokens.join(" ")) {
    film.seen = new Set()
    film.verdict = ""
  }
  film.data = data
  film.at = Math.min(film.at, last)
  first.checked = Boolean(window.txclsPredictFirst)
  slider.max = last
  const attention = weightsOf(data.attention)
  const curves = drawCurves(find(".curves"), data)
  const bars = drawBars(find(".classes ol"), data)
  const maps = drawMaps(section, film, data, attention, () => maps.show(film.at))

  const isAsked = () => first.checked && data.asked.includes(film.at) && !film.seen.has(film.at)
  const answer = (n) => data.classes[data.answers[n]]
  const total = data.steps[last].toLocaleString("en")
  const said = (n) => `step ${data.steps[n].toLocaleString("en")} of ${total}`

  function show() {
    const n = film.at
    const asked = isAsked()
    slider.value = n
    slider.setAttribute(
      "aria-valuetext",
      `${said(n)}: ${asked ? "predict first" : `${answer(n)}, ${percent(data.probabilities[n][data.answers[n]])}`}`,
    )
    find(".where").replaceChildren("Step ", element("b", { text: data.steps[n].toLocaleString("en") }), ` of ${total}`)
    find(".figures").replaceChildren(...figures(n).map((line) => element("div", { text: line })))
    curves.move(n, !first.checked)
    find(".ask").hidden = !asked
    state.classList.toggle("covered", asked)
    state.inert = asked
    if (asked) {
      stopPlaying()
      film.verdict = ""
      find(".ask p").textContent =
        `${capital(said(n - 1))}: ${answer(n - 1)}. At the end of training: ${answer(last)}. ` +
        `Does the model say ${answer(last)} by step ${data.steps[n].toLocaleString("en")}?`
    } else {
      bars.show(n)
      maps.show(n)
      showLens(find(".lens ol"), data, n)
    }
    find(".verdict").textContent = film.verdict
    play.textContent = film.timer ? "❚❚ Pause" : n === last ? "↺ Play again" : "▶ Play"
    keepAddress(data.steps[n], data.steps[data.unsaid])
  }

  const figures = (n) => {
    const seen = n === 0 ? [] : [["training", data.train_loss[n], data.train_accuracy[n]]]
    return [...seen, ["validation", data.validation_loss[n], data.validation_accuracy[n]]]
      .filter(([, loss]) => loss !== null)
      .map(([rows, loss, accuracy]) => `${rows}: loss ${loss.toFixed(3)}, ${percent(accuracy)}`)
  }

  const go = (n) => {
    film.at = Math.min(Math.max(n, 0), last)
    film.verdict = ""
    show()
  }
  const stopPlaying = () => {
    clearInterval(film.timer)
    film.timer = 0
  }
  const togglePlay = () => {
    if (film.timer) stopPlaying()
    else {
      if (film.at === last) film.at = 0
      film.timer = setInterval(() => {
        if (film.at + 1 >= last) stopPlaying()
        go(film.at + 1)
      }, PAUSE_MS)
    }
    show()
  }
  const guess = (event) => {
    const guessed = event.target.dataset.guess
    if (!guessed) return
    const right = data.answers[film.at] === data.answers[last]
    film.seen.add(film.at)
    film.verdict =
      `${(guessed === "true") === right ? "✓ Right" : "✗ Wrong"}: at ${said(film.at)} the model says ` +
      `${answer(film.at)}, ${percent(data.probabilities[film.at][data.answers[film.at]])}.`
    show()
    play.focus()
  }
  const key = (event) => {
    const target = event.composedPath()[0]
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.defaultPrevented) return
    const inside = section.contains(target)
    const elsewhere = !inside && target.closest?.(CONTROLS)
    const typing = target.matches?.(TYPING)
    const moves = { ArrowLeft: -1, ArrowDown: -1, PageUp: -1, ArrowRight: 1, ArrowUp: 1, PageDown: 1 }
    const paged = event.key.startsWith("Page")
    if (event.key === " ") {
      if (typing || target.closest?.("button, a, summary, input[type=checkbox], [role=button], [role=tab]")) return
      togglePlay()
    } else if (event.key === "Escape" && inside && film.large) maps.enlarge(null)
    else if (event.key in moves && !typing && (paged || !elsewhere)) {
      if (!paged && event.key.match(/Up|Down/) && target !== slider) return
      if (paged && film.at === (moves[event.key] < 0 ? 0 : last)) {
        if (target === slider) event.preventDefault() // which would take a step of its own
        return // elsewhere these keys move the page
      }
      stopPlaying()
      go(film.at + moves[event.key])
    } else return
    event.preventDefault()
  }

  slider.oninput = () => {
    stopPlaying()
    go(Number(slider.value))
  }
  play.onclick = togglePlay
  first.onchange = () => {
    window.txclsPredictFirst = first.checked
    film.verdict = ""
    show()
  }
  find(".options").onclick = guess
  find(".curves").onclick = (event) => {
    stopPlaying()
    go(curves.nearest(event.clientX))
  }
  document.addEventListener("keydown", key)
  const sized = new ResizeObserver(() => {
    curves.draw()
    curves.move(film.at, !first.checked)
    maps.name()
  })
  sized.observe(find(".course"))
  show()
  film.stop = () => {
    stopPlaying()
    sized.disconnect()
    document.removeEventListener("keydown", key)
  }
  return film.stop
}

function drawCurves(svg, data) {
  const last = data.steps.length - 1
  let line, width, height
  const x = (n) => PADDING.left + ((width - PADDING.left - PADDING.right) * n) / last
  const kinds = ["loss", "accuracy"]
  const pick = (kind) => [data[`train_${kind}`], data[`validation_${kind}`]]
  svg.setAttribute(
    "aria-label",
    `Loss and accuracy in ${last + 1} states from step 0 to step ${data.steps[last]}. Validation loss goes from ` +
      `${data.validation_loss[0].toFixed(2)} to ${data.validation_loss[last].toFixed(2)}, validation accuracy from ` +
      `${percent(data.validation_accuracy[0])} to ${percent(data.validation_accuracy[last])}.`,
  )

  const triangle = (across, down) => svgElement("path", { class: "flips flip", d: `M${across - 5} ${down}h10l-5 -8z` })
  function draw() {
    ;[width, height] = [svg.clientWidth, svg.clientHeight] // not those on the screen: lecture mode enlarges them
    const parts = []
    const panel = (height - PADDING.top - PADDING.between - PADDING.bottom) / 2
    kinds.forEach((kind, place) => {
      const [train, validation] = pick(kind)
      const top = PADDING.top + place * (panel + PADDING.between)
      const most = kind === "accuracy" ? 1 : Math.max(...train, ...validation)
      const y = (value) => top + panel * (1 - value / most)
      for (const value of [0, most]) {
        const name = kind === "accuracy" ? `${100 * value} %` : value.toFixed(value ? 1 : 0)
        parts.push(svgElement("line", { class: "axis", x1: x(0), x2: x(last), y1: y(value), y2: y(value) }))
        parts.push(svgElement("text", { x: PADDING.left - 8, y: y(value) + 4, "text-anchor": "end" }, name))
      }
      for (const [name, values] of [["train", train], ["validation", validation]]) {
        const points = values.map((value, n) => (value === null ? "" : `${x(n)},${y(value)}`)).filter(Boolean)
        parts.push(svgElement("polyline", { class: name, points: points.join(" ") }))
      }
      parts.push(svgElement("text", { x: x(0) + 6, y: top - 5, "font-weight": 650 }, kind))
    })
    const wide = width > 560
    const legend = [["validation", "validation"], ["train", "training"]]
    legend.forEach(([name, split], place) => {
      const left = x(0) + (wide ? 90 + 150 * place : 48 + 106 * place)
      const words = wide ? `${split} rows` : split
      parts.push(svgElement("line", { class: name, x1: left, x2: left + 22, y1: PADDING.top - 9, y2: PADDING.top - 9 }))
      parts.push(svgElement("text", { x: left + 28, y: PADDING.top - 5 }, words))
    })
    if (data.flips.length) {
      const left = x(0) + (wide ? 90 + 150 * legend.length : 48 + 98 * legend.length)
      parts.push(triangle(left + 5, PADDING.top - 5))
      const words = wide ? "the answer flips" : "flips"
      parts.push(svgElement("text", { class: "flips", x: left + 16, y: PADDING.top - 5 }, words))
    }
    const every = Math.ceil((last * 58) / (width - PADDING.left - PADDING.right)) || 1
    for (let n = 0; n <= last; n += every) {
      const anchor = n + every > last ? "end" : n ? "middle" : "start"
      const shown = n + every > last ? last : n
      const words = data.steps[shown].toLocaleString("en")
      parts.push(svgElement("text", { x: x(shown), y: height - 4, "text-anchor": anchor }, words))
    }
    parts.push(svgElement("text", { x: PADDING.left - 8, y: height - 4, "text-anchor": "end" }, "step"))
    data.flips.forEach((n) => parts.push(triangle(x(n), height - PADDING.bottom + 3)))
    line = svgElement("line", { class: "head", y1: PADDING.top, y2: height - PADDING.bottom + 4 })
    svg.replaceChildren(...parts, line)
    // The thumb's centre moves between half its width from either end, so the slider is that much wider than the curves.
    const slider = svg.nextElementSibling
    slider.style.marginLeft = `${PADDING.left - 8}px`
    slider.style.width = `calc(100% - ${PADDING.left - 8}px)`
  }
  draw()
  return {
    draw,
    move(n, withFlips) {
      line.setAttribute("x1", x(n))
      line.setAttribute("x2", x(n))
      svg.querySelectorAll(".flips").forEach((one) => (one.style.display = withFlips ? "" : "none"))
    },
    nearest: (clientX) => {
      const box = svg.getBoundingClientRect()
      const across = ((clientX - box.left) * width) / box.width
      return Math.round(((across - PADDING.left) / (width - PADDING.left - PADDING.right)) * last)
    },
  }
}

function drawBars(list, data) {
  const n_rows = Math.min(data.rows, data.classes.length)
  const last = data.answers[data.answers.length - 1]
  const rows = data.classes.map((name, index) => row(name + (index === last ? " ★" : ""), name))
  const rest = row(`all others`, "all others")
  rest.classList.add("rest")
  list.replaceChildren(...rows, ...(data.has_others ? [rest] : []))
  list.style.height = `calc(var(--row) * ${n_rows + data.has_others})`
  list.parentElement.querySelector(".note").textContent = "★ the answer at the end of training"

  function row(words, title) {
    const item = element("li")
    const name = element("span", { text: words, className: "name" })
    name.title = title
    name.dir = "auto"
    const track = element("span", { className: "track" })
    track.append(element("div", { className: "bar" }))
    item.append(name, track, element("span", { className: "value" }))
    return item
  }
  const set = (item, place, value) => {
    item.hidden = false
    item.style.transform = `translateY(calc(var(--row) * ${place}))`
    item.querySelector(".bar").style.width = `${100 * value}%`
    item.querySelector(".value").textContent = percent(value)
  }
  return {
    show(n) {
      const values = data.probabilities[n]
      const order = values.map((_, index) => index).sort((one, other) => values[other] - values[one])
      let left = 1
      order.forEach((index, place) => {
        const item = rows[index]
        item.classList.toggle("top-class", index === data.answers[n])
        if (place >= n_rows) item.hidden = true
        else {
          set(item, place, values[index])
          left -= values[index]
        }
      })
      if (data.has_others) set(rest, n_rows, Math.max(left, 0))
    },
  }
}

function drawMaps(section, film, data, attention, redraw) {
  const [, n_layers, n_heads, n_tokens] = data.shape
  const grid = section.querySelector(".maps")
  const large = section.querySelector(".large")
  const cell = section.querySelector(".cell")
  grid.style.setProperty("--heads", n_heads)
  grid.style.setProperty("--layers", n_layers)
  large.style.setProperty("--tokens", n_tokens)
  drawScale(section.querySelector(".scale"))
  cell.textContent = "0 to 1; rows are queries. Click to enlarge."
  const size = n_tokens * n_tokens
  const weights = (n, layer, head) => {
    const place = (n * n_layers + layer) * n_heads + head
    return attention.subarray(place * size, (place + 1) * size)
  }
  const title = (layer, head) => `Layer ${layer + 1}, head ${head + 1}`
  const paint = (canvas, values) => canvas.getContext("2d").putImageData(heatMap(values, n_tokens, n_tokens), 0, 0)
  const strongest = (values) => {
    let most = 0
    values.forEach((value, place) => (most = value > values[most] ? place : most))
    return pair(values, most)
  }
  const pair = (values, place) =>
    `${data.tokens[Math.floor(place / n_tokens)]} → ${data.tokens[place % n_tokens]} ${values[place].toFixed(2)}`
  const watch = (canvas, layer, head) => {
    canvas.onpointermove = (event) => {
      const box = canvas.getBoundingClientRect()
      const [row, column] = [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width].map(
        (share) => Math.min(Math.max(Math.floor(share * n_tokens), 0), n_tokens - 1),
      )
      cell.textContent = `${title(layer, head)}: ${pair(weights(film.at, layer, head), row * n_tokens + column)}`
    }
  }
  const small = []
  for (let layer = 0; layer < n_layers; layer++)
    for (let head = 0; head < n_heads; head++) {
      const canvas = square()
      watch(canvas, layer, head)
      const box = button({ onClick: () => enlarge([layer, head]) }, canvas, `${layer + 1}.${head + 1}`)
      small.push({ layer, head, box, canvas })
    }
  grid.replaceChildren(...small.map((map) => map.box))

  function square() {
    const canvas = element("canvas")
    canvas.width = canvas.height = n_tokens
    return canvas
  }
  function enlarge(chosen) {
    const before = film.large
    film.large = chosen
    build()
    redraw()
    const focus = chosen ? large.querySelector("button") : small.find((map) => map.layer === before?.[0] && map.head === before?.[1])?.box
    focus?.focus()
  }
  function build() {
    if (film.large && (film.large[0] >= n_layers || film.large[1] >= n_heads)) film.large = null
    grid.hidden = Boolean(film.large)
    large.hidden = !film.large
    if (!film.large) return large.replaceChildren()
    const back = button({ text: "◀ All heads", onClick: () => enlarge(null) })
    const bar = element("div", { className: "bar-of-large" }, back, element("b", { text: title(...film.large) }))
    const names = (kind) => {
      const axis = element("div", { className: kind })
      axis.append(...data.tokens.map(() => element("span")))
      axis.setAttribute("aria-hidden", "true")
      return axis
    }
    const canvas = square()
    canvas.setAttribute("role", "img")
    watch(canvas, ...film.large)
    large.replaceChildren(bar, names("queries"), canvas, names("keys"))
    name()
  }
  // Beside the enlarged map, as many tokens as there is room for.
  function name() {
    const every = Math.ceil((LABEL_PX * n_tokens) / (large.querySelector("canvas")?.clientHeight || 300))
    for (const axis of large.querySelectorAll(".queries, .keys"))
      data.tokens.forEach((token, place) => (axis.children[place].textContent = place % every ? "" : token))
  }
  build()
  return {
    enlarge,
    name,
    show(n) {
      for (const { layer, head, box, canvas } of small) {
        if (!film.large) paint(canvas, weights(n, layer, head))
        box.setAttribute(
          "aria-label",
          `${title(layer, head)}; largest weight: ${strongest(weights(n, layer, head))}; enlarge`,
        )
      }
      if (film.large) {
        const canvas = large.querySelector("canvas")
        paint(canvas, weights(n, ...film.large))
        canvas.setAttribute(
          "aria-label",
          `Attention of ${title(...film.large)}; largest weight: ${strongest(weights(n, ...film.large))}`,
        )
      }
    },
  }
}

function showLens(list, data, n) {
  const rows = data.states.map((state, place) => {
    const item = element("li")
    const value = data.lens[n][place]
    const name = element("span", { text: data.classes[data.lens_answers[n][place]], className: "name" })
    name.dir = "auto"
    const track = element("span", { className: "track" })
    const bar = element("div", { className: "bar" })
    bar.style.width = `${100 * value}%`
    track.append(bar)
    item.append(element("span", { text: state, className: "after" }), name, element("span", { text: percent(value), className: "value" }), track)
    item.classList.toggle("top-class", data.lens_answers[n][place] === data.answers[data.answers.length - 1])
    return item
  })
  list.replaceChildren(...rows)
}

let later
/** Write the step into the address, unless it is the one that an address without a step means. */
function keepAddress(step, unsaid) {
  clearTimeout(later)
  later = setTimeout(() => {
    const address = new URL(window.location.href)
    if (step !== unsaid) address.searchParams.set("training_step", step)
    else address.searchParams.delete("training_step")
    if (address.href !== window.location.href) history.replaceState(history.state, "", address)
  }, 200)
}

const capital = (words) => words[0].toUpperCase() + words.slice(1)

/** All weights of attention, from the base64 of 16-bit integers. */
function weightsOf(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  return Float32Array.from(new Uint16Array(bytes.buffer), (value) => value / MOST)
}

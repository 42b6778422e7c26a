// Turns slides, steps and pages with PageDown and PageUp regardless of focus, switches lecture mode with F9, and draws
// the bar with the current position. Slides change in the browser; steps and other pages come from the server.
// Font sizes of formulas, as shares of their usual size: those to try, the minimum for all, and that for a wide one.
const FORMULA_SHARES = [1.6, 1.4, 1.25, 1.2, 1], MIN_COMMON_SHARE = 1, MIN_FORMULA_SHARE = 0.7
const MIN_CHART_SHARE = 0.4 // minimum height of a chart beside larger formulas, as a share of the window's
const MIN_ZOOM_WITH_ANSWER = 0.8 // minimum zoom of a slide above the lesson's answer
const TEXT_ZOOMS = [2, 1.8, 1.6, 1.45, 1.3, 1.15] // of a slide without charts
const REQUEST_AGAIN_MS = 5000
const IN_VIEW_MS = 4000 // charts above a part of a page may need this long to reach their final height
const SHOWN = '[class*="st-key-slide_"]:not([inert])'
const ANSWER = ".st-key-lesson_answer"
const OFFSETS = { PageDown: 1, PageUp: -1 }

export default function ({ data, parentElement, setTriggerValue, setStateValue }) {
  const lecture = (window.txclsLecture ??= { page: null, at: 0, requestedFrom: null })
  const find = (selector) => parentElement.querySelector(selector)
  const bar = { data, lecture, find, setTriggerValue, setStateValue, style: styleElement(), last: data.slides.length - 1 }
  nameLesson(data.lesson)
  goToPart(data, lecture)
  const isNew = setSlide(bar)
  const { beforeOthers, afterOthers } = keyHandlers(bar)
  find(".back").onclick = () => turn(bar, -1)
  find(".next").onclick = () => turn(bar, 1)
  find(".skip").onclick = () => skip(bar, 1)
  find(".code").onclick = () => showCode(bar, !lecture.showsCode)
  find(".class").onclick = () => lecture.classroom?.toggle()
  find(".leave").onclick = () => setTriggerValue("mode", Date.now())
  fillMenu(bar)
  reportSize(bar)
  window.txclsStopLecture?.()
  window.addEventListener("keydown", beforeOthers, true)
  window.addEventListener("keydown", afterOthers)
  lecture.showPlace = () => showPlace(bar)
  lecture.showClass = () => {
    find(".class").textContent = lecture.classLabel || "Audience"
    find(".class").classList.toggle("open", Boolean(lecture.classLabel))
  }
  lecture.showClass()
  show(bar)
  const drawn = setTimeout(() => show(bar), 150) // the slide may be drawn later than this component
  const contents = new MutationObserver(() => fit(document.querySelector(SHOWN), lecture))
  if (data.on) contents.observe(document.querySelector('[data-testid="stMain"]'), { childList: true, subtree: true })
  const answer = document.querySelector(ANSWER)
  const { style } = document.documentElement
  const answerHeight = new ResizeObserver(() => style.setProperty("--lecture-answer-height", `${answer.offsetHeight}px`))
  if (data.on && answer) answerHeight.observe(answer)
  const stop = () => {
    clearTimeout(drawn)
    contents.disconnect()
    answerHeight.disconnect()
    window.removeEventListener("keydown", beforeOthers, true)
    window.removeEventListener("keydown", afterOthers)
  }
  window.txclsStopLecture = stop
  lecture.live = stop // until the next call, which Streamlit may make before or after it ends this one
  if (isNew) takeStoredTurn(bar)
  return () => {
    if (lecture.live === stop) lecture.live = null
    stop()
    if (!document.querySelector('[class*="st-key-slide_"]')) bar.style.textContent = ""
  }
}

function styleElement() {
  try {
    // The picture reads the number of pixels; otherwise the value would be an expression.
    CSS.registerProperty({ name: "--machine-below", syntax: "<length>", inherits: true, initialValue: "0px" })
  } catch {} // it is registered already
  const style = document.getElementById("txcls-slide") ?? document.head.appendChild(document.createElement("style"))
  style.id = "txcls-slide"
  return style
}

/** Set language and name of a lesson's panel, and the language of its cover and answer. */
function nameLesson(lesson) {
  const language = lesson?.language ?? "en"
  const attributes = { lang: language, role: "region", "aria-label": lesson?.title ?? "" }
  const panel = document.querySelector(".st-key-lesson_panel")
  for (const [name, value] of Object.entries(attributes)) panel?.setAttribute(name, value)
  for (const part of document.querySelectorAll(`.st-key-lesson_cover, ${ANSWER}`)) part.lang = language
}

/** On a new step of a lesson, scroll to the part of the page that it is about. */
function goToPart(data, lecture) {
  const panel = document.querySelector(".st-key-lesson_panel")
  const step = data.lesson && `${data.lesson.title} ${data.lesson.at}`
  if (step && lecture.step && step !== lecture.step) {
    const scrolled = [panel, document.querySelector('[data-testid="stMain"]')] // on a phone, Next is below the narration
    for (const element of scrolled) element?.scrollTo(0, 0)
  }
  if (step !== lecture.step) lecture.stopScrolling?.()
  if (step !== lecture.step || data.on) lecture.partOf = null
  lecture.step = step
  const part = document.querySelector(".txcls-part")
  if (!data.on && data.lesson?.far_down && part && lecture.partOf !== step) {
    lecture.partOf = step
    // On a phone, where the panel is above the page, a button after the narration scrolls to the part.
    if (panel && getComputedStyle(panel).position === "fixed") keepInView(part, lecture)
  }
  for (const button of document.querySelectorAll(".txcls-to-part")) button.onclick = () => part && keepInView(part, lecture)
}

/** Set the initial slide of this call; return whether the page or mode is new. */
function setSlide({ data, lecture, last }) {
  const isNew = lecture.page !== data.page || lecture.on !== data.on
  if (isNew) {
    const slide = new URL(location.href).searchParams.get("slide")
    lecture.at = slide === "last" ? last : (Number.parseInt(slide, 10) || 1) - 1
    lecture.showsCode = false
    clearTimeout(lecture.requestTimer)
    Object.assign(lecture, { page: data.page, on: data.on, requestedFrom: null })
  }
  lecture.nSlides = last + 1
  lecture.at = Math.max(0, Math.min(lecture.at, last))
  return isNew || !lecture.live
}

/** Show the current slide and the bar, or the whole page outside lecture mode. */
function show(bar) {
  const { data, lecture, find, style, last } = bar
  find(".bar").hidden = !data.on
  if (!data.on) {
    style.textContent = ""
    for (const formula of document.querySelectorAll(".katex-display > .katex")) formula.style.fontSize = ""
    return
  }
  const slide = data.slides[lecture.at]
  const selector = slide ? `.st-key-slide_${slide.n}` : '[data-testid="stMainBlockContainer"]'
  const shown = document.querySelector(selector) // null while the slide is drawn
  if (shown && lecture.shown !== slide) Object.assign(shown.style, { zoom: "", inset: "" })
  lecture.shown = slide
  style.textContent = slideStyle(slide, selector)
  for (const element of document.querySelectorAll('[class*="st-key-slide_"]')) {
    element.inert = !element.matches(selector)
    const isOfLesson = data.slides.some((other) => other.lesson && element.matches(`.st-key-slide_${other.n}`))
    if (data.lesson) element.lang = isOfLesson ? data.lesson.language : "en"
  }
  const [at, of] = data.lesson ? [data.lesson.at, data.lesson.of] : data.at ?? [lecture.at, data.slides.length]
  const title = find(".title")
  title.textContent = data.lesson?.step ?? data.title // a slide begins with its own title
  title.classList.remove("long")
  title.classList.toggle("long", title.scrollHeight > title.clientHeight + 2)
  title.lang = data.lesson?.language ?? "en"
  find(".count").textContent = of ? `${at + 1} / ${of}` : ""
  find(".count").classList.toggle("steps", Boolean(data.at))
  showPlace(bar)
  find(".planned").textContent = data.lesson?.planned ?? ""
  find(".back").disabled = data.first && (data.lesson ? lecture.at : at) <= 0
  find(".next").disabled = data.last && (data.lesson ? lecture.at >= last : at >= of - 1)
  drawMap(find(".map"), data.layers, slide?.shows ?? [], partOpeners(bar))
  clearTimeout(lecture.shrinkTimer)
  if (slide?.own_keys || slide?.answer) shrinkToFit(shown, lecture, 40)
  fit(shown, lecture)
  showCode(bar, lecture.showsCode)
  const address = new URL(location.href)
  if (lecture.at) address.searchParams.set("slide", lecture.at + 1)
  else address.searchParams.delete("slide")
  if (address.href !== location.href) history.replaceState(history.state, "", address)
}

/** Show the place in the film, whose slide handles the page keys itself; the picture has a counter of its own. */
function showPlace({ data, lecture, find }) {
  find(".place").textContent = (data.on && !data.lesson && data.page === "film" && lecture.place) || ""
}

/** Whether the map's part `name` is `part` or lies in it, as "attn.0" lies in "attn". */
const isPartOf = (name, part) => part === name || name.startsWith(`${part}.`)

/** A function that returns, for a part of the map, what a click on it does; null for nothing. In a lesson, a click opens
 * the slide of this step, or else the next step, that is about the part. */
function partOpeners(bar) {
  const { data, lecture, last, setTriggerValue } = bar, { lesson } = data
  if (!lesson) return (name) => () => setTriggerValue("target", name)
  return (name) => {
    const shown = data.slides.findIndex(({ shows }) => shows.some((part) => isPartOf(name, part)))
    const slide = shown < 0 && isPartOf(name, lesson.parts[lesson.at]) ? Math.min(1, last) : shown
    if (slide >= 0) return () => Object.assign(lecture, { at: slide }) && show(bar)
    const steps = lesson.parts.map((part, step) => (isPartOf(name, part) ? step : -1)).filter((step) => step >= 0)
    const step = steps.find((other) => other > lesson.at) ?? steps[0]
    return step === undefined ? null : () => setTriggerValue("target", String(step))
  }
}

/** CSS that makes a slide visible; a page without slides is shown as a whole. */
function slideStyle(slide, selector) {
  if (!slide) {
    return `${selector} {visibility: visible !important; padding: 84px 32px !important;}` +
      '[data-testid="stMain"] {overflow-y: auto !important;}'
  }
  return `${selector} {visibility: visible !important; opacity: 1 !important; z-index: 1 !important;}` +
    (slide.own_keys ? "html {font-size: 17px !important;}" : "") +
    // The picture adapts to its window's height only when its width changes.
    (slide.answer ? "html {--lecture-answer: var(--lecture-answer-height, 0px) !important;}" +
      `${ANSWER} {visibility: visible !important;} ${selector} {padding-right: calc(1.15rem + 1px) !important;}` : "") +
    (slide.hides_answer ? ".st-key-lecture_strip .txcls-strip {visibility: hidden;}" : "")
}

/** Go forward (1) or back (-1); return whether the key was handled. */
function turn(bar, offset) {
  const { data, lecture, last } = bar
  if (data.on && lecture.classroom?.turn(offset)) { // the bars and the answer of a class come between two slides
    show(bar)
    return true
  }
  const button = data.at && document.querySelector(`.st-key-step_${offset > 0 ? "next" : "back"} button`)
  if (button && !button.disabled) {
    button.click()
    return true
  }
  if (!data.on && !data.lesson) return false
  if (data.on && !data.at && lecture.at + offset >= 0 && lecture.at + offset <= last) {
    Object.assign(lecture, { at: lecture.at + offset, showsCode: false })
    show(bar)
  } else if (lecture.requestedFrom === data.page) {
    lecture.storedTurn = offset // the next page handles this when it has been loaded
  } else if (!(offset > 0 ? data.last : data.first)) {
    lecture.requestedFrom = data.page
    lecture.requestTimer = setTimeout(() => allowRequest(bar), REQUEST_AGAIN_MS)
    bar.setTriggerValue("turn", offset)
  }
  return true
}

/** Go to the next or previous part of the model on Step by step, and otherwise to the next or previous page or step of a
 * lesson. */
function skip({ data, find, setTriggerValue }, offset) {
  const parts = data.at ? [...find(".map").querySelectorAll("[role=button]")] : []
  const part = parts[parts.findLastIndex((other) => other.classList.contains("here")) + offset]
  if (part) part.click()
  else setTriggerValue("turn", offset)
}

/** Show or hide the link to this view and its QR code, which fills the slide. */
function showCode({ data, lecture, find }, isShown) {
  lecture.showsCode = isShown && data.on
  const shared = find(".shared"), [image, link, warning] = shared.children, { code } = data.shared
  shared.hidden = !lecture.showsCode
  image.hidden = !code
  if (code) image.src = code
  link.textContent = data.shared.link
  warning.textContent = data.shared.warning
}

/** Handle a key that was pressed while the page was loading. */
function takeStoredTurn(bar) {
  const offset = bar.lecture.storedTurn
  bar.lecture.storedTurn = 0
  if (offset) turn(bar, offset)
}

/** Allow another request if a page was not loaded, but not while the server is still drawing it. */
function allowRequest(bar) {
  if (isRunning()) bar.lecture.requestTimer = setTimeout(() => allowRequest(bar), 500)
  else {
    bar.lecture.requestedFrom = null
    takeStoredTurn(bar)
  }
}

/** Two key handlers: one runs before any focused element, the other after a drawing that handles page keys itself. */
function keyHandlers(bar) {
  const { data, lecture } = bar
  const isPlain = (event) => !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey
  const direction = (event) => (isPlain(event) ? OFFSETS[event.key] : undefined)
  const ownKeys = () => data.on && !data.lesson && data.slides[lecture.at]?.own_keys
  const consume = (event) => {
    event.preventDefault()
    event.stopImmediatePropagation()
  }
  const beforeOthers = (event) => {
    if (event.key === "F9" && isPlain(event)) {
      event.preventDefault()
      if (!event.repeat) bar.setTriggerValue("mode", Date.now())
      return
    }
    const isSkip = data.on && event.shiftKey && !event.altKey && !event.ctrlKey && !event.metaKey
    if (isSkip && OFFSETS[event.key]) {
      consume(event)
      skip(bar, OFFSETS[event.key])
      return
    }
    const offset = direction(event)
    if (!offset || (!data.on && !data.at && !data.lesson)) return
    if (!ownKeys()) {
      if (turn(bar, offset)) consume(event)
    } else if (event.target !== document.body) {
      // The drawing ignores keys pressed while another element has the focus.
      consume(event)
      document.activeElement?.blur()
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: event.key, bubbles: true, cancelable: true }))
    }
  }
  const afterOthers = (event) => {
    const key = data.on && isPlain(event) && !isTyping(event) && event.key.toLowerCase()
    if (key === "g") openMenu(bar.find(".go"), event)
    if (key === "a") lecture.classroom?.toggle()
    if (key === "escape") lecture.classroom?.escape()
    if (key === "q" || (key === "escape" && lecture.showsCode)) showCode(bar, !lecture.showsCode)
    const offset = direction(event)
    if (offset && ownKeys() && !event.defaultPrevented && turn(bar, offset)) event.preventDefault()
  }
  return { beforeOthers, afterOthers }
}

/** Scroll to a part of the page, and again when the page's height changes, for IN_VIEW_MS or until the user scrolls. */
function keepInView(part, lecture) {
  lecture.stopScrolling?.()
  const page = document.querySelector('[data-testid="stMainBlockContainer"]')
  const resized = new ResizeObserver(() => part.scrollIntoView({ block: "start" }))
  const events = ["wheel", "touchstart", "pointerdown", "keydown"]
  const timer = setTimeout(() => lecture.stopScrolling(), IN_VIEW_MS)
  lecture.stopScrolling = () => {
    clearTimeout(timer)
    resized.disconnect()
    for (const name of events) window.removeEventListener(name, lecture.stopScrolling, true)
    lecture.stopScrolling = null
  }
  resized.observe(page) // also calls back immediately
  for (const name of events) window.addEventListener(name, lecture.stopScrolling, true)
}

/** Fill the slide: enlarge the formulas beside its charts, or a slide of only text as a whole. */
function fit(slide, lecture) {
  fitFormulas(slide)
  clearTimeout(lecture.fitTimer)
  if (!slide || !lecture.shown || lecture.shown.own_keys) return
  const isText = !slide.querySelector(".stPlotlyChart")
  if (isText && isRunning()) { // a chart may follow
    lecture.fitTimer = setTimeout(() => fit(document.querySelector(SHOWN), lecture), 100)
    return
  }
  slide.classList.toggle("txcls-text-slide", isText)
  const fits = (zoom) => {
    setZoom(slide, zoom)
    const parts = [slide, ...slide.querySelectorAll("table")] // a table scrolls by itself
    return parts.every((part) => part.scrollHeight <= part.clientHeight + 1 && part.scrollWidth <= part.clientWidth + 1)
  }
  if (!(isText && TEXT_ZOOMS.some(fits)) && !lecture.shown.answer) setZoom(slide, "")
}

/** Enlarge a slide without changing the room that it takes. */
function setZoom(slide, zoom) {
  const inset = zoom && `calc(var(--lecture-bar) / ${zoom}) 0 calc(var(--lecture-below) / ${zoom})`
  Object.assign(slide.style, { zoom, inset })
}

/** Draw a slide's formulas as large as its room allows, all in one size except those that are too wide for it. */
function fitFormulas(slide) {
  const formulas = [...(slide?.querySelectorAll(".katex-display > .katex") ?? [])]
  const charts = [...(slide?.querySelectorAll(".stPlotlyChart") ?? [])]
  const resize = (share) => {
    for (const formula of formulas) formula.style.fontSize = ""
    const own = formulas.map((formula) => Number.parseFloat(getComputedStyle(formula).fontSize))
    const widest = formulas.map((formula, n) => widestSize(formula, share * own[n]))
    const common = Math.max(MIN_COMMON_SHARE, Math.min(share, ...widest.map((size, n) => size / own[n])))
    formulas.forEach((formula, n) => {
      formula.style.fontSize = `${Math.max(MIN_FORMULA_SHARE * own[n], Math.min(widest[n], common * own[n]))}px`
    })
    return slide.scrollHeight <= slide.clientHeight + 1 &&
      charts.every((chart) => chart.clientHeight >= MIN_CHART_SHARE * innerHeight)
  }
  if (formulas.length) FORMULA_SHARES.some(resize)
}

/** The largest size in pixels, up to `size`, at which a formula is not wider than its column. */
function widestSize(formula, size) {
  formula.style.fontSize = `${size}px`
  const { scrollWidth } = formula.parentElement
  const column = formula.closest('[data-testid="stElementContainer"]') ?? formula.parentElement
  return scrollWidth <= column.clientWidth ? size : Math.floor((size * column.clientWidth) / scrollWidth)
}

/** Reduce the zoom of a drawing until it fits; check repeatedly for a while, since it may still be loading. A height
 * counts once it has been the same for a second. */
function shrinkToFit(element, lecture, times, lastHeight = 0, nSame = 0) {
  const zoom = element?.currentCSSZoom ?? 1, least = lecture.shown.answer ? MIN_ZOOM_WITH_ANSWER : 1
  if (!times || zoom <= least || !element.isConnected) return
  const height = element.scrollHeight, excess = height / element.clientHeight
  nSame = height === lastHeight ? nSame + 1 : 0
  if (excess > 1.005 && nSame >= 5) {
    setZoom(element, Math.max(least, zoom / Math.min(excess, 1.1)))
  }
  lecture.shrinkTimer = setTimeout(() => shrinkToFit(element, lecture, times - 1, height, nSame), 200)
}

/** Whether the server is still drawing the page. */
const isRunning = () => (document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState ?? "notRunning") !== "notRunning"

const isTyping = (event) => event.composedPath()[0].closest?.("textarea, input, select, [contenteditable]")

function openMenu(menu, event) {
  event.preventDefault()
  menu.focus()
  menu.showPicker?.()
}

/** Offer the pages, or the steps of the lesson, and the classifiers in the bar's menu, which the key G opens. */
function fillMenu({ data, find, setTriggerValue }) {
  const menu = find(".go")
  const groups = Object.entries(data.menu).map(([label, options]) => {
    const group = Object.assign(document.createElement("optgroup"), { label })
    group.append(...options.map(([target, title]) => new Option(title, target)))
    return group
  })
  menu.replaceChildren(new Option("Go to (G)", ""), ...groups)
  menu.onchange = () => menu.value && setTriggerValue("target", menu.value)
}

/** Report to the server whether the window is small, so that charts get smaller type. */
function reportSize({ data, lecture, setStateValue }) {
  if (!data.on) return
  const query = matchMedia("(max-width: 1599px), (max-height: 999px)")
  const report = () => query.matches !== data.small && setStateValue("small", query.matches)
  if (lecture.query) lecture.query.onchange = null
  lecture.query = query
  query.onchange = report
  report()
}

/** Draw the map of the model from the text to the prediction; the parts that the slide shows are filled. A layer has one
 * box, with its number; while the slide shows its attention or its feed-forward block, it has one box for each. */
function drawMap(map, layers, shows, openerOf) {
  const box = (name, text, title = text) => {
    const part = document.createElement("b")
    part.textContent = text
    part.classList.toggle("here", shows.some((part) => isPartOf(name, part)))
    const open = openerOf(name)
    if (open) {
      part.onclick = open
      part.title = `${title}: open this step`
      part.setAttribute("role", "button")
    }
    return part
  }
  const layerBoxes = (n) => {
    const [attention, feedForward] = [`attn.${n}`, `ff.${n}`]
    if (![attention, feedForward].some((name) => shows.includes(name))) return [box(attention, n + 1, `layer ${n + 1}`)]
    return [box(attention, `${n + 1}: attention`), box(feedForward, "feed-forward")]
  }
  map.replaceChildren(...(layers === null ? [] : [ // the language model has no pooling and no classes
    ...["words", "vectors"].map((name) => box(name, name)),
    Object.assign(document.createElement("i"), { textContent: "layer" }),
    ...Array.from({ length: layers }, (_, n) => layerBoxes(n)).flat(),
    box("pool", "pooling"),
    box("classes", "classes"),
  ]))
  map.setAttribute("aria-label", `Map of the model; parts on this slide: ${shows.join(", ") || "all"}`)
}

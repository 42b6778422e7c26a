// Turns slides, steps and pages with PageDown and PageUp regardless of focus, switches lecture mode with F9, and draws
// the bar with the current position. Slides are turned in the browser; steps and other pages come from the server.
const MAX_LETTERED_LAYERS = 3 // with more layers, the map has no letters
const MIN_FORMULA_SHARE = 0.7 // of the type in the slide
const ASK_AGAIN_MS = 5000
const STAY_MS = 4000 // how long charts above a part of a page may take to reach their final height
const LONG = { attn: "attention", ff: "feed-forward" }

export default function ({ data, parentElement, setTriggerValue, setStateValue }) {
  const lecture = (window.txclsLecture ??= { page: null, at: 0, asked: null })
  const find = (selector) => parentElement.querySelector(selector)
  const bar = { data, lecture, find, setTriggerValue, setStateValue, style: styleElement(), last: data.slides.length - 1 }
  nameLesson(data.lesson)
  goToPart(data, lecture)
  const isNew = takeOver(bar)
  const { first, afterDrawing } = keyHandlers(bar)
  find(".back").onclick = () => turn(bar, -1)
  find(".next").onclick = () => turn(bar, 1)
  find(".leave").onclick = () => setTriggerValue("mode", Date.now())
  fillPages(bar)
  tellSize(bar)
  window.txclsStopLecture?.()
  window.addEventListener("keydown", first, true)
  window.addEventListener("keydown", afterDrawing)
  show(bar)
  const drawn = setTimeout(() => show(bar), 150) // headings may be drawn later than this component
  const formulas = new MutationObserver(() => fitFormulas(document.body))
  if (data.on) formulas.observe(document.querySelector('[data-testid="stMain"]'), { childList: true, subtree: true })
  const stop = () => {
    clearTimeout(drawn)
    formulas.disconnect()
    window.removeEventListener("keydown", first, true)
    window.removeEventListener("keydown", afterDrawing)
  }
  window.txclsStopLecture = stop
  lecture.live = stop // until another call takes over; Streamlit may make that call before or after it ends this one
  if (isNew) takeWaiting(bar)
  return () => {
    if (lecture.live === stop) lecture.live = null
    stop()
    if (!document.querySelector('[class*="st-key-slide_"]')) bar.style.textContent = ""
  }
}

function styleElement() {
  const style = document.getElementById("txcls-slide") ?? document.head.appendChild(document.createElement("style"))
  style.id = "txcls-slide"
  return style
}

/** Set language and name of a lesson's panel and cover. */
function nameLesson(lesson) {
  const language = lesson?.language ?? "en"
  const attributes = { lang: language, role: "region", "aria-label": lesson?.title ?? "" }
  const panel = document.querySelector(".st-key-lesson_panel")
  for (const [name, value] of Object.entries(attributes)) panel?.setAttribute(name, value)
  document.querySelector(".st-key-lesson_cover")?.setAttribute("lang", language)
}

/** On a new step of a lesson, scroll to the part of the page that it is about. */
function goToPart(data, lecture) {
  const panel = document.querySelector(".st-key-lesson_panel")
  const step = data.lesson && `${data.lesson.title} ${data.lesson.at}`
  if (step && lecture.step && step !== lecture.step) {
    for (const element of [panel, document.querySelector('[data-testid="stMain"]')]) element?.scrollTo(0, 0) // on a phone, Next is lower
  }
  if (step !== lecture.step) lecture.stay?.()
  if (step !== lecture.step || data.on) lecture.partOf = null
  lecture.step = step
  const part = document.querySelector(".txcls-part")
  if (!data.on && data.lesson?.far_down && part && lecture.partOf !== step) {
    lecture.partOf = step
    // If the panel is above the page, as on a phone, the narration is read first, and a button leads to the part.
    if (panel && getComputedStyle(panel).position === "fixed") stayAt(part, lecture)
  }
  for (const button of document.querySelectorAll(".txcls-to-part")) button.onclick = () => part && stayAt(part, lecture)
}

/** Set the initial slide of this call; returns whether the page or mode is new. */
function takeOver({ data, lecture, last }) {
  const isOther = lecture.page !== data.page || lecture.on !== data.on
  if (isOther) {
    const asked = new URL(location.href).searchParams.get("slide")
    lecture.at = asked === "last" ? last : (Number.parseInt(asked, 10) || 1) - 1
    clearTimeout(lecture.rearming)
    Object.assign(lecture, { page: data.page, on: data.on, asked: null })
  }
  lecture.at = Math.max(0, Math.min(lecture.at, last))
  return isOther || !lecture.live
}

/** Show the current slide and the bar, or the whole page outside lecture mode. */
function show({ data, lecture, find, style, last, setTriggerValue }) {
  find(".bar").hidden = !data.on
  if (!data.on) {
    style.textContent = ""
    for (const formula of document.querySelectorAll(".katex-display > .katex")) formula.style.fontSize = ""
    return
  }
  const slide = data.slides[lecture.at]
  const selector = slide ? `.st-key-slide_${slide.n}` : '[data-testid="stMainBlockContainer"]'
  style.textContent = slideStyle(slide, selector)
  for (const element of document.querySelectorAll('[class*="st-key-slide_"]')) {
    element.inert = !element.matches(selector)
    const isOfLesson = data.slides.some((other) => other.lesson && element.matches(`.st-key-slide_${other.n}`))
    if (data.lesson) element.lang = isOfLesson ? data.lesson.language : "en"
  }
  const [at, of] = data.lesson ? [data.lesson.at, data.lesson.of] : data.at ?? [lecture.at, data.slides.length]
  const heading = slide && document.querySelector(`${selector} :is(h2, h3)`)?.textContent
  find(".title").textContent = data.lesson?.step ?? heading ?? data.title
  find(".title").title = data.title
  find(".title").lang = data.lesson?.language ?? "en"
  find(".count").textContent = of ? `${at + 1} / ${of}` : ""
  find(".planned").textContent = data.lesson?.planned ?? ""
  find(".done").style.width = of ? `${(100 * (at + 1)) / of}%` : "0"
  find(".back").disabled = data.first && (data.lesson ? lecture.at : at) <= 0
  find(".next").disabled = data.last && (data.lesson ? lecture.at >= last : at >= of - 1)
  drawMap(find(".map"), data.layers, slide?.shows ?? [], data.lesson ? null : (part) => setTriggerValue("part", part))
  clearTimeout(lecture.fitting)
  if (slide?.own_keys) shrinkToFit(document.querySelector(selector), lecture, 40)
  fitFormulas(document.querySelector(selector))
  const address = new URL(location.href)
  if (lecture.at) address.searchParams.set("slide", lecture.at + 1)
  else address.searchParams.delete("slide")
  if (address.href !== location.href) history.replaceState(history.state, "", address)
}

/** CSS that makes a slide visible; a page without slides is shown as a whole. */
function slideStyle(slide, selector) {
  if (!slide) {
    return `${selector} {visibility: visible !important; padding: 84px 32px !important;}` +
      '[data-testid="stMain"] {overflow-y: auto !important;}'
  }
  return `${selector} {visibility: visible !important; opacity: 1 !important; z-index: 1 !important;}` +
    (slide.own_keys ? "html {font-size: 17px !important;}" : "") +
    (slide.hides_answer ? ".st-key-lecture_strip .txcls-strip {visibility: hidden;}" : "")
}

/** Go forward or back by one; returns whether the key was handled. */
function turn(bar, by) {
  const { data, lecture, last } = bar
  const button = data.at && document.querySelector(`.st-key-step_${by > 0 ? "next" : "back"} button`)
  if (button && !button.disabled) {
    button.click()
    return true
  }
  if (!data.on && !data.lesson) return false
  if (data.on && !data.at && lecture.at + by >= 0 && lecture.at + by <= last) {
    lecture.at += by
    show(bar)
  } else if (lecture.asked === data.page) {
    lecture.waiting = by // the next page is loading and handles this when it arrives
  } else if (!(by > 0 ? data.last : data.first)) {
    lecture.asked = data.page
    lecture.rearming = setTimeout(() => rearm(bar), ASK_AGAIN_MS)
    bar.setTriggerValue("turn", by)
  }
  return true
}

/** Handle the key that was pressed while nothing could be turned. */
function takeWaiting(bar) {
  const by = bar.lecture.waiting
  bar.lecture.waiting = 0
  if (by) turn(bar, by)
}

/** Allow another request for a page that does not arrive, but not while the server is still drawing. */
function rearm(bar) {
  const state = document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState
  if (state && state !== "notRunning") bar.lecture.rearming = setTimeout(() => rearm(bar), 500)
  else {
    bar.lecture.asked = null
    takeWaiting(bar)
  }
}

/** Two key handlers: one runs before any focused element, the other after a drawing that handles page keys itself. */
function keyHandlers(bar) {
  const { data, lecture } = bar
  const isPlain = (event) => !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey
  const direction = (event) => (isPlain(event) ? { PageDown: 1, PageUp: -1 }[event.key] : undefined)
  const ownKeys = () => data.on && !data.lesson && data.slides[lecture.at]?.own_keys
  const swallow = (event) => {
    event.preventDefault()
    event.stopImmediatePropagation()
  }
  const first = (event) => {
    if (event.key === "F9" && isPlain(event)) {
      event.preventDefault()
      if (!event.repeat) bar.setTriggerValue("mode", Date.now())
      return
    }
    const by = direction(event)
    if (!by || (!data.on && !data.at && !data.lesson)) return
    if (!ownKeys()) {
      if (turn(bar, by)) swallow(event)
    } else if (event.target !== document.body) {
      // The drawing ignores keys pressed while another element has the focus.
      swallow(event)
      document.activeElement?.blur()
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: event.key, bubbles: true, cancelable: true }))
    }
  }
  const afterDrawing = (event) => {
    if (data.on && isPlain(event) && event.key.toLowerCase() === "g" && !isTyping(event)) openMenu(bar.find(".go"), event)
    const by = direction(event)
    if (by && ownKeys() && !event.defaultPrevented && turn(bar, by)) event.preventDefault()
  }
  return { first, afterDrawing }
}

/** Scroll to a part of the page, and again when the page's height changes, for STAY_MS or until the user scrolls. */
function stayAt(part, lecture) {
  lecture.stay?.()
  const page = document.querySelector('[data-testid="stMainBlockContainer"]')
  const again = new ResizeObserver(() => part.scrollIntoView({ block: "start" }))
  const events = ["wheel", "touchstart", "pointerdown", "keydown"]
  const timer = setTimeout(() => lecture.stay(), STAY_MS)
  lecture.stay = () => {
    clearTimeout(timer)
    again.disconnect()
    for (const one of events) window.removeEventListener(one, lecture.stay, true)
    lecture.stay = null
  }
  again.observe(page) // also calls back immediately
  for (const one of events) window.addEventListener(one, lecture.stay, true)
}

/** Shrink formulas that are too wide to fit, down to the smallest readable size. */
function fitFormulas(element) {
  const least = Number.parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--lecture-type")) || 0
  for (const one of element?.querySelectorAll(".katex-display") ?? []) {
    const formula = one.querySelector(".katex")
    formula.style.fontSize = ""
    if (one.scrollWidth <= one.clientWidth + 1) continue
    const size = Number.parseFloat(getComputedStyle(formula).fontSize)
    formula.style.fontSize = `${Math.max(MIN_FORMULA_SHARE * least, Math.floor((size * one.clientWidth) / one.scrollWidth))}px`
  }
}

/** Reduce the zoom of a drawing until it fits; it may still be loading, so check repeatedly for a while. */
function shrinkToFit(element, lecture, times) {
  const zoom = element?.currentCSSZoom ?? 1
  if (!times || zoom <= 1 || !element.isConnected) return
  const over = element.scrollHeight / element.clientHeight
  if (over > 1.005) {
    const less = Math.max(1, zoom / Math.min(over, 1.1))
    const high = getComputedStyle(document.documentElement).getPropertyValue("--lecture-bar")
    Object.assign(element.style, { zoom: less, inset: `calc(${high} / ${less}) 0` })
  }
  lecture.fitting = setTimeout(() => shrinkToFit(element, lecture, times - 1), 200)
}

const isTyping = (event) => event.composedPath()[0].closest?.("textarea, input, select, [contenteditable]")

function openMenu(menu, event) {
  event.preventDefault()
  menu.focus()
  menu.showPicker?.()
}

/** Offer the pages in the bar's menu, which the key G opens. */
function fillPages({ data, find, setTriggerValue }) {
  const menu = find(".go")
  menu.hidden = Boolean(data.lesson)
  menu.replaceChildren(new Option("Go to (G)", ""), ...data.pages.map(([name, title]) => new Option(title, name)))
  menu.onchange = () => menu.value && setTriggerValue("page", menu.value)
}

/** Tell the server whether the window is small: charts get smaller type then. */
function tellSize({ data, lecture, setStateValue }) {
  if (!data.on) return
  const query = matchMedia("(max-width: 1599px), (max-height: 999px)")
  const tell = () => query.matches !== data.small && setStateValue("small", query.matches)
  if (lecture.query) lecture.query.onchange = null
  lecture.query = query
  query.onchange = tell
  tell()
}

/** Draw the map from the text to the prediction; the parts that the slide shows are filled. */
function drawMap(map, layers, shows, onPart) {
  const box = (name, text) => {
    const made = document.createElement("b")
    const long = LONG[name.split(".")[0]] ?? text
    made.textContent = shows.includes(name) ? long : text
    made.title = long
    made.classList.toggle("here", shows.some((one) => one === name || name.startsWith(`${one}.`)))
    made.classList.toggle("small", !made.textContent)
    if (onPart) {
      made.onclick = () => onPart(name)
      made.title = `${long}: open this step`
      made.setAttribute("role", "button")
    }
    return made
  }
  const gap = (text) => Object.assign(document.createElement("i"), { textContent: text })
  const blocks = layers === null
    ? [box("attn.0", "layers")]
    : Array.from({ length: layers }, (_, n) => [
        gap(layers > MAX_LETTERED_LAYERS ? "·" : `${n + 1}`),
        ...["attn", "ff"].map((kind) => box(`${kind}.${n}`, layers > MAX_LETTERED_LAYERS ? "" : kind === "attn" ? "A" : "F")),
      ]).flat()
  map.replaceChildren(
    ...["words", "vectors"].map((name) => box(name, name)),
    ...blocks,
    ...["pool", "classes"].map((name) => box(name, name)),
  )
  map.setAttribute("aria-label", `Map of the model; this is about: ${shows.join(", ") || "all of it"}`)
}

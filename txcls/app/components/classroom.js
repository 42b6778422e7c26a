// A class on the lecturer's slides: the room's code, the numbers of phones and answers, the bars, and a list of texts.
// It polls the room without rerunning the page (txcls/app/classroom/rooms.py); what the audience sent is set as text.
const STORED = "txcls-class" // the room and its key, so that a reload of this tab finds it again
const N_PROBES = 6
const isLocal = /^(localhost|127\.|\[::1)/.test(location.hostname)
const MAX_BARS = 8 // for numbers, not counting those for the outermost

export default function ({ data, parentElement, setTriggerValue }) {
  const lecture = (window.txclsLecture ??= { page: null, at: 0, requestedFrom: null })
  const room = (window.txclsClass ??= { view: "", state: null })
  const isNewQuestion = (room.data?.question ?? null) !== (data.question ?? null)
  const find = (selector) => parentElement.querySelector(selector)
  const act = (action) => setTriggerValue("act", { ...action, at: Date.now() })
  const isNewRoom = room.data?.room?.name !== data.room?.name
  Object.assign(room, { data, find, act, lecture })
  if (isNewRoom) Object.assign(room, { state: null, isSpread: false, view: data.room && room.isOpening ? "code" : "" })
  if (isNewQuestion && room.view !== "code") room.view = data.own ? "question" : ""
  if (isNewQuestion && data.own) room.view = "question"
  rememberRoom(room)
  label(room)
  find(".ask-text").onclick = () => ask(room, "text")
  find(".ask-heads").onclick = () => ask(room, "heads")
  find(".stop").onclick = () => act({ do: "ask" })
  find(".end").onclick = () => {
    room.ended = data.room.name
    act({ do: "end" })
  }
  find(".again").onclick = () => command(room, "again").then(() => open(room, data.own ? "question" : ""))
  find(".list").onclick = () => openList(room)
  lecture.classroom = { toggle: () => toggle(room), turn: (offset) => turn(room, offset), escape: () => room.view === "code" && toggle(room) }
  open(room, room.view)
  if (data.room && data.room.name !== room.following) follow(room)
}

/** Store a new room in this tab; without one, ask the server once to resume the stored room. */
function rememberRoom(room) {
  try {
    if (room.data.room) {
      const { name, key } = room.data.room
      sessionStorage.setItem(STORED, JSON.stringify({ name, key }))
      room.isOpening = false
    } else if (!room.hasResumed && sessionStorage.getItem(STORED)) {
      room.act({ do: "resume", ...JSON.parse(sessionStorage.getItem(STORED)) })
    } else sessionStorage.removeItem(STORED)
  } catch {}
  room.hasResumed = true
}

function label({ find, data: { words, own, room } }) {
  for (const [place, text] of Object.entries({
    join: "join", label: "question", "ask-text": "ask_text", "ask-heads": "ask_heads", end: "end", list: "list", again: "again", stop: "stop",
  })) find(`.${place}`).textContent = words[text]
  find(".wanted").placeholder = words.text_ask
  find(".stop").hidden = !own
  if (!room) return
  find(".link").textContent = room.link.replace(/^https?:\/\//, "")
  find(".image").src = room.code
}

/** Open the class, or show or hide its code. */
function toggle(room) {
  if (room.data.room) return open(room, room.view === "code" ? "" : "code")
  room.isOpening = true
  room.act({ do: "open" })
}

/** Show a view over the slide: "code", "question", "bars" or "answer"; "" shows the slide. */
function open(room, view) {
  const isOther = room.view !== view
  room.view = view
  if (isOther && view === "bars") command(room, "close")
  if (isOther && view === "answer") command(room, "answer")
  draw(room)
  if (isOther && view) room.find(".panel").focus()
}

/** Go to the next or previous view of the class; return whether there is one. The bars come after the slides with which
 * the question is asked. */
function turn(room, offset) {
  const { data, lecture, view } = room
  if (view === "code") {
    open(room, data.own ? "question" : "")
    return true
  }
  if (!data.room || !data.question) return false
  const question = current(room)?.question
  const results = question?.kind === "text" ? [] : question && !question.answer ? ["bars"] : ["bars", "answer"]
  const views = data.own ? ["question", ...results] : results
  const before = Math.min(data.looks ? 2 : 1, lecture.nSlides) - 1
  if (!view) {
    const isThere = !data.own && lecture.at === (offset > 0 ? before : before + 1)
    if (isThere) {
      lecture.at = before
      open(room, offset > 0 ? views[0] : views.at(-1))
    }
    return isThere
  }
  const next = views.indexOf(view) + offset
  if (view === "question" && offset > 0) command(room, "close")
  open(room, views[next] ?? "")
  return data.own || next < views.length // else the next slide follows
}

/** The server's latest state of this slide's question; null before it has arrived. */
const current = ({ state, data }) => (state?.question && state.question.id === data.question ? state : null)

async function request({ data: { room } }, query, options = {}) {
  const response = await fetch(`${new URL(room.link).pathname}/lecturer${query}`, { ...options, headers: { "X-Class": room.key }, cache: "no-store" })
  if (!response.ok) throw new Error(String(response.status))
  return response
}

const command = (room, name, mark = "") =>
  request(room, "", { method: "POST", body: JSON.stringify({ command: name, mark }) }).catch(() => {}) // the next poll shows the state

/** Poll the room as long as it is on the page. */
async function follow(room) {
  const { name } = room.data.room
  room.following = name
  probe(room)
  const isOver = () => room.following !== name || room.ended === name || !room.find(".panel")?.isConnected
  while (!isOver()) {
    const seen = room.state?.version ?? ""
    try {
      const state = await (await request(room, `?seen=${seen}`)).json()
      if (isOver()) break
      room.state = state
      draw(room)
      if (state.version === seen) await new Promise((resolve) => setTimeout(resolve, 300))
    } catch (error) {
      if (error.message === "404") room.act({ do: "ask" }) // it has ended: the page is drawn without it
      await new Promise((resolve) => setTimeout(resolve, 2000))
    }
  }
  if (room.following === name) room.following = null
}

/** Test whether phones can miss the room: request it without the cookie that ties this browser to one server process. */
async function probe(room) {
  const asked = Array.from({ length: N_PROBES }, () =>
    fetch(new URL(room.data.room.link).pathname, { method: "HEAD", credentials: "omit", cache: "no-store" }).catch(() => ({ status: 0 })))
  room.isSpread = (await Promise.all(asked)).some(({ status }) => status === 404)
  draw(room)
}

function ask(room, kind) {
  room.act({ do: "ask", kind, id: `own ${Date.now()}`, ask: kind === "text" ? room.find(".wanted").value.trim() : "" })
}

function draw(room) {
  const { find, view, data, lecture } = room, { words } = data, state = current(room)
  find(".panel").hidden = !view || !data.room
  find(".room").hidden = view !== "code"
  find(".asked").hidden = view === "code"
  const phones = words.phones.replace("{n}", room.state?.phones ?? "–")
  const answers = words.answers.replace("{n}", state?.n ?? "–").replace("{phones}", room.state?.phones ?? "–")
  lecture.classLabel = !data.room ? "" : data.question ? answers : phones
  lecture.showClass?.()
  if (!data.room) return
  find(".panel").lang = data.language
  find(".warning").textContent = [isLocal && words.local, room.isSpread && words.spread].filter(Boolean).join(" ")
  const [beside, below] = findAll(room, ".numbers")
  say(beside, phones)
  say(below, answers)
  const question = state?.question
  find(".list").hidden = question?.kind !== "text"
  find(".again").hidden = !state || state.stage === "open"
  find(".ask").textContent = question?.ask ?? ""
  find(".options").textContent = view === "question" && question?.kind === "choice" ? question.options.join(" · ") : ""
  find(".answer").textContent = view === "answer" && question ? `${words.model} ${question.answer}` : ""
  drawRows(room, state)
  drawList(room)
}

const findAll = ({ find }, selector) => find(".panel").querySelectorAll(selector)

/** Set a status text only if it has changed, so that a screen reader does not repeat it. */
const say = (element, text) => element.textContent !== text && (element.textContent = text)

/** Draw the bars of each row; the right ones are marked once the answer is shown. */
function drawRows({ find, view, data: { words } }, state) {
  const rows = find(".rows"), isShown = ["bars", "answer"].includes(view) && state && state.stage !== "open"
  rows.hidden = !isShown
  if (!isShown) return
  const { question, answers } = state
  const counted = question.kind === "number" ? [["", numberBars(answers, question.right)]]
    : question.rows.map((name, row) => [name, question.options.map((option, n) =>
      [option, answers.filter((chosen) => chosen[row] === n).length, question.right[row].includes(n)])])
  rows.classList.toggle("many", counted.length > 1)
  rows.replaceChildren(...counted.map(([name, bars]) => {
    const box = document.createElement("div"), most = Math.max(1, ...bars.map(([, count]) => count))
    box.className = bars.length > 8 ? "bars dense" : "bars"
    if (name) box.append(Object.assign(document.createElement("h3"), { textContent: name }))
    for (const [text, count, right] of bars) {
      const isRight = view === "answer" && right
      const label = Object.assign(document.createElement("span"), { textContent: isRight ? `✓ ${text}` : text, className: isRight ? "right" : "" })
      const bar = document.createElement("i"), share = answers.length ? Math.round((100 * count) / answers.length) : 0
      bar.style.width = `${(100 * count) / most}%`
      box.append(label, bar, Object.assign(document.createElement("span"), { textContent: `${count} · ${share} %` }))
    }
    if (!answers.length) box.append(Object.assign(document.createElement("h3"), { textContent: words.nobody }))
    return box
  }))
}

/** Count numbers in intervals of a round width: each interval's label, count, and whether it contains the right number.
 * The lowest and the highest tenth do not widen the intervals; those beyond are counted in the outermost two. */
function numberBars(numbers, right) {
  if (!numbers.length) return []
  const sorted = [...numbers].sort((a, b) => a - b), cut = Math.floor(sorted.length / 10)
  const [low, high] = [sorted[cut], sorted[sorted.length - 1 - cut]]
  const least = Math.max((high - low) / MAX_BARS, 1e-9), power = 10 ** Math.floor(Math.log10(least))
  const step = low === high ? 1 : power * [1, 2, 5, 10].find((factor) => factor * power >= least)
  const [first, last] = [Math.floor(low / step), Math.floor(high / step)]
  const place = (number) => Math.max(first - 1, Math.min(last + 1, Math.floor(number / step)))
  const places = sorted.map(place), edge = (n) => String(Number((n * step).toPrecision(6))).replace("-", "−")
  return Array.from({ length: places.at(-1) - places[0] + 1 }, (_, n) => n + places[0]).map((at) => [
    at < first ? `< ${edge(first)}` : at > last ? `≥ ${edge(at)}` : `${edge(at)} – ${edge(at + 1)}`,
    places.filter((other) => other === at).length,
    at === place(right),
  ])
}

/** Open the list of texts in a window of its own, which the lecturer keeps off the projector. */
function openList(room) {
  room.list = window.open("", "txcls-texts", "popup,width=560,height=760")
  room.listed = null
  drawList(room)
}

function drawList(room) {
  const page = room.list && !room.list.closed ? room.list.document : null, { words, language } = room.data
  const texts = Object.entries(current(room)?.texts ?? {}), listed = JSON.stringify(texts)
  if (!page || room.listed === listed) return
  room.listed = listed
  page.title = words.texts
  page.documentElement.lang = language
  page.documentElement.style.cssText = "color-scheme: light dark; font: 20px/1.4 system-ui, sans-serif"
  const focused = page.activeElement?.id
  const button = (mark, name, act) => Object.assign(page.createElement("button"), {
    id: `${name}-${mark}`, textContent: words[name], onclick: act, style: "font: inherit; margin-right: 8px",
  })
  page.body.replaceChildren(
    Object.assign(page.createElement("h1"), { textContent: words.texts, style: "font-size: 24px" }),
    ...texts.map(([mark, text]) => {
      const item = Object.assign(page.createElement("p"), { style: "border-top: 1px solid; padding-top: 8px; overflow-wrap: anywhere" })
      item.append(Object.assign(page.createElement("bdi"), { textContent: text }), page.createElement("br"),
        button(mark, "pick", () => {
          open(room, "")
          room.act({ do: "pick", mark })
        }), button(mark, "hide", () => command(room, "hide", mark)))
      return item
    }))
  page.getElementById(focused)?.focus()
}

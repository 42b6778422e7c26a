// The page of an audience's phone: shows the lecturer's question and sends the answer. All texts are set as text.
const WORDS = JSON.parse(document.getElementById("words").textContent);
const MAX_WAIT_MS = 8000; // between two requests after a failed one
const find = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
const address = `${location.pathname.replace(/\/$/, "")}/phone`;
const phone = numberOfPhone();
let words = WORDS[(navigator.language ?? "en").split("-")[0]] ?? WORDS.en;
/** What the server last said. @type {any} */
let shown = { version: "", question: null };

/** This phone's random number for this room, the same after a reload and another scan if the browser stores it. */
function numberOfPhone() {
  const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
  const number = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  try {
    const stored = localStorage.getItem(address) ?? number;
    localStorage.setItem(address, stored);
    return stored;
  } catch {
    return number;
  }
}

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));
const request = (/** @type {string} */ query, /** @type {object} */ options = {}) =>
  fetch(`${address}${query}`, { ...options, headers: { "X-Class": phone }, cache: "no-store" });

/** Follow the lecturer until the class has ended. */
async function follow() {
  for (let wait = 500; ; ) {
    const start = performance.now(), { version } = shown;
    try {
      const response = await request(`?seen=${version}`);
      if (response.status === 404) return show({ question: null }, words.ended);
      if (!response.ok) throw response.status;
      show(await response.json());
      if (shown.version === version && performance.now() - start < 2000) await pause(2000); // the server is too busy to wait
      wait = 500;
    } catch (problem) {
      find("status").textContent = problem === 503 ? words.full : words.lost;
      await pause(wait * (0.5 + Math.random()));
      wait = Math.min(2 * wait, MAX_WAIT_MS);
    }
  }
}

/** @param {any} now @param {string} [status] */
function show(now, status) {
  const isNew = now.question?.id !== shown.question?.id || (now.stage === "open" && shown.stage !== "open");
  shown = now;
  const { question } = now;
  words = WORDS[question?.language.split("-")[0]] ?? words;
  document.documentElement.lang = question?.language ?? document.documentElement.lang;
  find("ask").textContent = question?.ask ?? "";
  find("ask").hidden = !question;
  if (isNew) drawQuestion(question);
  mark();
  if (status) find("status").textContent = status;
}

/** Draw the controls of a new question. @param {any} question */
function drawQuestion(question) {
  const rows = question?.kind === "choice" ? question.rows : [];
  find("rows").replaceChildren(...rows.map(drawRow));
  find("form").hidden = !question || question.kind === "choice";
  find("send").textContent = words.send;
  for (const kind of ["number", "text"]) {
    find(kind).hidden = question?.kind !== kind;
    find(kind).value = shown.mine ?? "";
  }
  find("unit").textContent = question?.kind === "number" ? question.options[0] : "";
  if (question) find("ask").focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** @param {string} name @param {number} row */
function drawRow(name, row) {
  const group = document.createElement("fieldset"), { options } = shown.question;
  group.append(Object.assign(document.createElement("legend"), { textContent: name, hidden: !name }));
  group.classList.toggle("short", options.length > 8 && options.every((/** @type {string} */ option) => option.length < 5));
  group.classList.toggle("pair", Boolean(name));
  if (!name) group.setAttribute("aria-labelledby", "ask");
  options.forEach((/** @type {string} */ option, /** @type {number} */ n) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: option });
    button.onclick = () => {
      shown.mine = shown.question.rows.map((/** @type {string} */ _, /** @type {number} */ other) => (other === row ? n : shown.mine?.[other] ?? null));
      mark();
      send(shown.mine);
    };
    group.append(button);
  });
  return group;
}

/** Mark the answer of this phone and the right one, and say what is going on. */
function mark() {
  const { question, stage, mine } = shown, isOpen = stage === "open", answer = question?.answer;
  find("rows").childNodes.forEach((/** @type {Element} */ group, /** @type {number} */ row) => {
    group.querySelectorAll("button").forEach((button, n) => {
      button.setAttribute("aria-pressed", String(mine?.[row] === n));
      button.classList.toggle("right", question.right?.[row].includes(n) ?? false);
      button.disabled = !isOpen;
    });
  });
  for (const name of ["number", "text", "send"]) find(name).disabled = !isOpen;
  find("answer").hidden = !answer;
  find("answer").textContent = answer ? `${words.model} ${answer}` : "";
  const hasAnswered = mine !== null && mine !== undefined;
  find("status").textContent = !question ? words.wait : !isOpen ? words.closed : hasAnswered ? words.sent : "";
}

/** Send an answer to the question; try again after a while if it was sent too soon or the connection is lost.
 * @param {any} answer @param {number} [times] */
async function send(answer, times = 6) {
  const { id } = shown.question, sent = (send.latest = Symbol("answer"));
  for (let n = 0; n < times && send.latest === sent && shown.question?.id === id; n++) {
    if (n) await pause(400 * n * (0.5 + Math.random()));
    const response = await request("", { method: "POST", body: JSON.stringify({ question: id, answer }) }).catch(() => null);
    if (response && response.status !== 429) return response.ok;
    find("status").textContent = words.lost;
  }
  return false;
}

find("form").onsubmit = async (/** @type {Event} */ event) => {
  event.preventDefault();
  const isNumber = shown.question.kind === "number";
  const typed = find(isNumber ? "number" : "text").value.trim();
  const answer = isNumber ? Number(typed.replace(",", ".").replace("−", "-").replace(/\s*%$/, "")) : typed;
  if (!typed || Number.isNaN(answer)) return find(isNumber ? "number" : "text").focus();
  if (await send(answer)) {
    shown.mine = answer;
    mark();
  }
};
follow();

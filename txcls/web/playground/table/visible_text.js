// The visible text of HTML, such as mails, without tags, style sheets and scripts.

const MARKUP_TAG = /<!doctype html|<\/(?:html|body|div|p|span|table|td|a|b|i|ul|ol|li|font|h[1-6]|style|strong|em)\s*>|<br\s*\/?>/i;
const HIDDEN_ELEMENTS = ["style", "script", "head", "title", "template"];
const LINE_BREAKING = new Set("br p div tr li table ul ol h1 h2 h3 h4 h5 h6 blockquote".split(" "));
const MIN_SHARE_OF_HTML = 0.2;

/** Whether many of these texts are HTML rather than plain text. @param {string[]} texts */
export function areHtml(texts) {
  return texts.filter((text) => MARKUP_TAG.test(text)).length >= Math.max(1, MIN_SHARE_OF_HTML * texts.length);
}

/** The visible text of HTML. None of it is loaded or run. @param {string} html */
export function visibleText(html) {
  const lower = html.toLowerCase(), end = html.length;
  const next = (sought, from) => {
    const found = lower.indexOf(sought, from);
    return found < 0 ? end : found;
  };
  let text = "", body = -1, close = -1;
  for (let from = 0; from < end;) {
    const open = next("<", from);
    text += html.slice(from, open);
    if (open === end) break;
    if (lower.startsWith("<!--", open)) {
      from = next("-->", open) + 3;
      continue;
    }
    const tag = /^<(\/?)([a-z][a-z0-9]*)|^<[!?]/.exec(lower.slice(open, open + 20));
    if (close < open) close = next(">", open);
    if (!tag || close === end) { // not a tag, but “<” in a text
      text += "<";
      from = open + 1;
      continue;
    }
    const name = tag[2] ?? "";
    text += LINE_BREAKING.has(name) ? "\n" : name === "td" ? "\t" : "";
    from = close + 1;
    if (HIDDEN_ELEMENTS.includes(name) && !tag[1]) { // up to its end, or to the body that follows an unclosed head
      if (body < from) body = next("<body", from);
      from = Math.min(body, next(`</${name}`, from));
    }
  }
  const plain = text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z][a-z0-9]{1,30}));/gi, (whole, decimal, hexadecimal, name) => {
    if (name) return namedCharacter(whole);
    const code = decimal ? Number(decimal) : parseInt(hexadecimal, 16);
    return code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : "";
  });
  return plain.split("\n").map((line) => line.replace(/\s+/g, " ").trim()).filter(Boolean).join("\n");
}

const namedCharacters = new Map();

/** The character of a named reference such as &eacute;, as the browser's parser knows it. */
function namedCharacter(reference) {
  if (!namedCharacters.has(reference)) {
    if (namedCharacters.size > 300) return reference;
    namedCharacters.set(reference, new DOMParser().parseFromString(reference, "text/html").body.textContent || " ");
  }
  return namedCharacters.get(reference);
}

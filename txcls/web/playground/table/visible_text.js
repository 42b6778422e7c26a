// The visible text of HTML, such as mails, without tags, style sheets and scripts.

const MARKUP_TAG = /<!doctype html|<\/(?:html|body|div|p|span|table|td|a|b|i|ul|ol|li|font|h[1-6]|style|strong|em)\s*>|<br\s*\/?>/i;
const HIDDEN_ELEMENTS = ["style", "script", "head", "title", "template"];
const LINE_BREAKING = new Set("br p div tr li table ul ol h1 h2 h3 h4 h5 h6 blockquote".split(" "));
const MIN_SHARE_OF_HTML = 0.2;

/** Whether many of these texts are HTML rather than plain text. @param {string[]} texts */
export function areHtml(texts) {
  return texts.filter((text) => MARKUP_TAG.test(text)).length >= Math.max(1, MIN_SHARE_OF_HTML * texts.length);
}

/** The visible text of HTML. Nothing of it is loaded or run. @param {string} html */
export function visibleText(html) {
  let text = "", hidden = "";
  for (let from = 0; from < html.length;) {
    const open = html.indexOf("<", from), end = open < 0 ? html.length : open;
    if (!hidden) text += html.slice(from, end);
    if (open < 0) break;
    if (html.startsWith("<!--", open)) {
      const close = html.indexOf("-->", open);
      from = close < 0 ? html.length : close + 3;
      continue;
    }
    const tag = /^<(\/?)([a-z][a-z0-9]*)|^<[!?]/i.exec(html.slice(open, open + 20)), close = html.indexOf(">", open);
    if (!tag || close < 0) { // not a tag, but “<” in a text
      if (!hidden) text += "<";
      from = open + 1;
      if (close < 0) {
        if (!hidden) text += html.slice(from);
        break;
      }
      continue;
    }
    const name = (tag[2] ?? "").toLowerCase();
    if (hidden) {
      if ((tag[1] && name === hidden) || name === "body") hidden = "";
    } else if (!tag[1] && HIDDEN_ELEMENTS.includes(name)) hidden = name;
    if (!hidden) text += LINE_BREAKING.has(name) ? "\n" : name === "td" ? "\t" : "";
    from = close + 1;
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

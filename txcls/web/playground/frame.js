// The window that the page is in: a file, or a frame of the app, which has the page's settings in its own address.

import {tr} from "../picture/translate.js";

/** Whether the page is in the app's frame, where the app's address has its settings as a parameter. */
export const inFrame = location.protocol === "about:";
/** The window whose address has the settings; null in a frame on another site. @type {Window | null} */
export const addressWindow = (() => {
  try {
    return inFrame ? parent.location.href && parent : window;
  } catch {
    return null;
  }
})();
/** Height of the app above its frame, and a margin, in pixels. */
const ABOVE_FRAME = 136;

/** Fit the page into the app's frame: its font, its height and its lecture mode. @param {() => void} redraw called when the
 * window's size has changed @param {(isLecture: boolean) => void} onLecture called when lecture mode begins and ends */
export function fitIntoFrame(redraw, onLecture) {
  document.body.classList.toggle("in-frame", inFrame);
  if (!inFrame || !addressWindow) return;
  const frame = window.frameElement, root = document.documentElement;
  frame.title = tr("Playground: train a Transformer in your browser");
  useFontOf(parent);
  const fit = () => {
    const isLecture = new URLSearchParams(parent.location.search).get("mode") === "lecture";
    if (root.classList.toggle("lecture", isLecture) !== wasLecture) {
      wasLecture = isLecture;
      onLecture(isLecture);
      setTimeout(redraw);
    }
    const height = document.body.offsetHeight + 40;
    frame.style.height = isLecture ? "" : `${height}px`; // as high as the page, so that it does not scroll by itself
    // The picture ends with the window, not with the frame.
    if (isLecture) root.style.removeProperty("--machine-below");
    else root.style.setProperty("--machine-below", String(Math.max(0, height - parent.innerHeight) + ABOVE_FRAME));
  };
  let wasLecture = false;
  new ResizeObserver(fit).observe(document.body);
  addEventListener("resize", () => { fit(); redraw(); });
  setInterval(fit, LECTURE_INTERVAL);
  document.addEventListener("keydown", (event) => { // the app handles these keys, but does not receive those pressed in a frame
    const isForApp = event.key === "F9" || (wasLecture && ["PageDown", "PageUp"].includes(event.key));
    if (!isForApp || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    parent.document.body.dispatchEvent(new KeyboardEvent("keydown", {key: event.key, bubbles: true, cancelable: true}));
  });
}
/** Milliseconds between checks whether the app is in lecture mode, which changes its address without an event. */
const LECTURE_INTERVAL = 300;

/** Use the font of the app around the frame: the app loads it, since this page loads nothing. @param {Window} app */
async function useFontOf(app) {
  const family = app.getComputedStyle(app.document.body).fontFamily, [name] = family.split(",");
  for (const sheet of app.document.styleSheets) {
    for (const {cssText, style} of sheet.cssRules) {
      const [, source] = /url\("(.+?)"\)/.exec(style?.getPropertyValue("src") ?? "") ?? [];
      if (!source || !cssText.startsWith("@font-face") || style.getPropertyValue("font-family") !== name) continue;
      const file = await app.fetch(new URL(source, sheet.href ?? app.location.href));
      document.fonts.add(new FontFace(name.replaceAll('"', ""), await file.arrayBuffer(),
        {weight: style.getPropertyValue("font-weight"), style: style.getPropertyValue("font-style")}));
    }
  }
  document.documentElement.style.fontFamily = family;
}

/** The parameters with the page's settings in the address; empty if the address cannot be read. */
export function settingsInAddress() {
  const {search, hash} = addressWindow?.location ?? {search: "", hash: ""};
  return inFrame ? new URLSearchParams(search).get("playground") ?? "" : hash.slice(1);
}

/** Write the settings to the address, which keeps its language. @param {string} settings @param {boolean} isDefault
 * @param {string | null} lang */
export function putSettings(settings, isDefault, lang = new URLSearchParams(settingsInAddress()).get("lang")) {
  if (!addressWindow) return;
  if (lang) [settings, isDefault] = [`${settings}&lang=${encodeURIComponent(lang)}`, false];
  const address = new URL(addressWindow.location.href);
  if (!inFrame) address.hash = settings;
  else if (isDefault) address.searchParams.delete("playground");
  else address.searchParams.set("playground", settings);
  if (address.href !== addressWindow.location.href) addressWindow.history.replaceState(addressWindow.history.state, "", address);
}

/** Let a button switch between the light and the dark theme; the app has its own. @param {HTMLElement} button
 * @param {() => void} redraw */
export function offerThemes(button, redraw) {
  const {dataset} = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const label = () => { button.textContent = isDark() ? tr("Light theme") : tr("Dark theme"); };
  button.addEventListener("click", () => {
    dataset.theme = isDark() ? "light" : "dark";
    label();
    redraw();
  });
  dark.addEventListener("change", () => {
    label();
    redraw();
  });
  label();
  button.hidden = inFrame;
}

// Save a picture made of SVG and HTML as a self-contained SVG, with styles as attributes, or as PNG. Everything visible
// (text, maps, bars, lines) keeps its position.

import {SVG, button, element, svgElement} from "./elements.js";
import {tr} from "./translate.js";

/** CSS properties of SVG shapes that are copied to attributes. */
const STYLED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-linecap", "stroke-linejoin",
  "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];
/** Pixels of the PNG per CSS pixel, and its maximum width and height. */
const FINE = 2, LONGEST_SIDE = 8000;
/** Margin around the picture in pixels. */
const AROUND = 12;

/** Create buttons that save a picture.
 * @param {() => {root: HTMLElement, file: string, label: string, skip?: string}} what the arguments of `svgOf`, and the
 * file name @returns {any} */
export function saveButtons(what) {
  const save = async (format) => {
    const {root, file, ...options} = what();
    if (!root.offsetHeight) return; // nothing is drawn yet
    const svg = svgOf(root, options);
    const blob = format === "svg" ? new Blob([svg], {type: "image/svg+xml"}) : await asPng(svg);
    handOver(blob, `${file.replace(/[^\p{L}\p{N}._-]+/gu, "-")}.${format}`);
  };
  const buttons = ["png", "svg"].map((format) => {
    const text = format.toUpperCase();
    return button({text, label: tr("Save the picture as {format}", {format: text}), onClick: () => save(format)});
  });
  return element("div", {className: "save-picture"}, tr("Save as"), ...buttons);
}

/** A picture as SVG. It must be on the page, since positions are measured.
 * @param {HTMLElement} root the element that contains it
 * @param {{label: string, skip?: string}} options title, and a selector of elements to leave out @returns {string} */
export function svgOf(root, {label, skip = ""}) {
  const frame = root.getBoundingClientRect(), zoom = frame.width / root.offsetWidth || 1;
  const wide = Math.ceil(frame.width / zoom) + 2 * AROUND, high = Math.ceil(frame.height / zoom) + 2 * AROUND;
  const made = svgElement("svg", {xmlns: SVG, width: wide, height: high, viewBox: `${-AROUND} ${-AROUND} ${wide} ${high}`});
  made.append(svgElement("title", {}, label), svgElement("rect", {x: -AROUND, y: -AROUND, width: wide, height: high, ...filled(groundOf(root))}));
  const place = (box) => ({x: (box.left - frame.left) / zoom, y: (box.top - frame.top) / zoom,
    width: box.width / zoom, height: box.height / zoom});
  copySeen(root, made, {place, skip, cuts: {n: 0}});
  return new XMLSerializer().serializeToString(made).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "");
}

/** @returns {Promise<Blob>} */
async function asPng(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const fine = Math.min(FINE, LONGEST_SIDE / Math.max(image.width, image.height));
  const canvas = element("canvas");
  [canvas.width, canvas.height] = [Math.round(image.width * fine), Math.round(image.height * fine)];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function handOver(blob, name) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** CSS colours converted to #rrggbb and opacity, which every SVG reader supports. */
const KNOWN_COLOURS = new Map();
function asHex(colour) {
  if (!KNOWN_COLOURS.has(colour)) {
    const canvas = element("canvas");
    canvas.width = canvas.height = 1;
    const context = canvas.getContext("2d");
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, alpha] = context.getImageData(0, 0, 1, 1).data;
    KNOWN_COLOURS.set(colour, {hex: `#${[r, g, b].map((one) => one.toString(16).padStart(2, "0")).join("")}`, alpha: alpha / 255});
  }
  return KNOWN_COLOURS.get(colour);
}

function filled(colour) {
  const {hex, alpha} = asHex(colour);
  return alpha < 1 ? {fill: hex, "fill-opacity": alpha} : {fill: hex};
}

/** The first opaque background colour among an element and its ancestors; white if there is none. */
function groundOf(root) {
  for (let one = root; one; one = one.parentElement ?? one.getRootNode().host) {
    const {backgroundColor} = getComputedStyle(one);
    if (asHex(backgroundColor).alpha === 1) return backgroundColor;
  }
  return "#ffffff";
}

/** Copy the visible parts of an element into a group. In rotated elements, `how.upright` is the unrotated box. */
function copySeen(one, group, how) {
  const style = getComputedStyle(one);
  const isHidden = style.display === "none" || style.visibility !== "visible" || Number(style.opacity) === 0;
  if (isHidden || (how.skip && one.matches(how.skip))) return;
  if (Number(style.opacity) < 1) group = group.appendChild(svgElement("g", {opacity: style.opacity}));
  if (one instanceof SVGSVGElement) return void group.append(drawing(one, how.place(one.getBoundingClientRect())));
  const turned = turnedGroup(one, style, how);
  if (turned) {
    group = group.appendChild(turned);
    how = {...how, upright: {x: 0, y: 0, width: one.offsetWidth, height: one.offsetHeight}};
  }
  const at = how.upright ?? how.place(one.getBoundingClientRect());
  if (one instanceof HTMLCanvasElement) {
    if (one.width && one.height) {
      group.append(svgElement("image", {...at, href: one.toDataURL(), preserveAspectRatio: "none", "image-rendering": "pixelated"}));
    }
    return;
  }
  backdrop(style, at, group);
  if (style.overflowX !== "visible" && one.scrollWidth > one.clientWidth + 1 && style.textOverflow !== "ellipsis") {
    const id = `cut${how.cuts.n++}`, clip = group.appendChild(svgElement("clipPath", {id}));
    clip.append(svgElement("rect", at));
    group = group.appendChild(svgElement("g", {"clip-path": `url(#${id})`}));
  }
  for (const child of one.childNodes) {
    if (child instanceof Element) copySeen(child, group, how);
    else if (child instanceof Text && child.data.trim()) writeText(child, one, style, group, how);
  }
}

/** A group with the transform of a rotated element, for drawing it unrotated at the origin; null if not rotated. */
function turnedGroup(one, {transform, transformOrigin}, how) {
  const {a, b, c, d, e, f} = new DOMMatrix(transform === "none" ? "" : transform);
  if ((!b && !c) || !one.offsetParent) return null;
  const {x, y} = how.place(one.offsetParent.getBoundingClientRect()), [ox, oy] = transformOrigin.split(" ").map(Number.parseFloat);
  return svgElement("g", {transform: `translate(${x + one.offsetLeft + ox} ${y + one.offsetTop + oy}) `
    + `matrix(${a} ${b} ${c} ${d} ${e} ${f}) translate(${-ox} ${-oy})`});
}

/** A copy of an SVG with its styles as attributes. */
function drawing(svg, at) {
  const made = /** @type {any} */ (svg.cloneNode(true)), copies = [made, ...made.querySelectorAll("*")];
  [svg, ...svg.querySelectorAll("*")].forEach((one, number) => {
    const style = getComputedStyle(one), twin = copies[number];
    for (const {name} of [...twin.attributes]) {
      if (/^(class|style|tabindex|role|(data|aria)-.*)$/.test(name)) twin.removeAttribute(name);
    }
    if (style.display === "none") return twin.setAttribute("display", "none");
    for (const name of STYLED) {
      const value = style.getPropertyValue(name);
      const isColour = (name === "fill" || name === "stroke") && value !== "none" && !value.startsWith("url");
      twin.setAttribute(name, isColour ? asHex(value).hex : value);
      if (isColour && asHex(value).alpha < 1) {
        twin.setAttribute(`${name}-opacity`, String(asHex(value).alpha * Number(style.getPropertyValue(`${name}-opacity`))));
      }
    }
  });
  for (const [name, value] of Object.entries(at)) made.setAttribute(name, String(Math.round(value * 100) / 100));
  made.setAttribute("overflow", "visible");
  return made;
}

/** Draw an element's background and border, with rounded corners. */
function backdrop(style, at, group) {
  const line = ["Top", "Right", "Bottom", "Left"].every((side) => style[`border${side}Style`] !== "none")
    ? Number.parseFloat(style.borderTopWidth) : 0;
  const ground = asHex(style.backgroundColor), edge = asHex(style.borderTopColor);
  if (!ground.alpha && !(line && edge.alpha)) return;
  group.append(svgElement("rect", {x: at.x + line / 2, y: at.y + line / 2, width: Math.max(0, at.width - line), height: Math.max(0, at.height - line),
    rx: Math.min(Number.parseFloat(style.borderTopLeftRadius) || 0, at.height / 2),
    ...(ground.alpha ? filled(style.backgroundColor) : {fill: "none"}),
    ...(line && edge.alpha ? {stroke: edge.hex, "stroke-opacity": edge.alpha, "stroke-width": line} : {})}));
}

/** Draw a text node line by line at its position. */
function writeText(text, parent, style, group, how) {
  const range = document.createRange(), context = element("canvas").getContext("2d");
  context.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const {fontBoundingBoxAscent: ascent, fontBoundingBoxDescent: descent} = context.measureText("x");
  const isRtl = style.direction === "rtl";
  for (const {line, start, end} of linesOf(text)) {
    range.setStart(text, start);
    range.setEnd(text, end);
    const drawn = range.getBoundingClientRect();
    // Leave out the lines that -webkit-line-clamp hides.
    if (style.webkitLineClamp !== "none" && drawn.top >= parent.getBoundingClientRect().bottom - 2) return;
    const box = how.place(drawn);
    let [x, y, wide] = [box.x, box.y + (box.height - ascent - descent) / 2 + ascent, box.width];
    if (how.upright) {
      wide = context.measureText(line).width;
      [x, y] = [Number.parseFloat(style.paddingLeft), (how.upright.height - ascent - descent) / 2 + ascent];
    }
    let shown = line;
    const room = parent.clientWidth;
    if (style.textOverflow === "ellipsis" && parent.scrollWidth > room) {
      while (shown && context.measureText(`${shown}…`).width > room) shown = shown.slice(0, -1);
      shown += "…";
      wide = context.measureText(shown).width;
    }
    const made = svgElement("text", {x: isRtl ? x + wide : x, y, textLength: wide, lengthAdjust: "spacingAndGlyphs", "xml:space": "preserve",
      "font-family": style.fontFamily, "font-size": style.fontSize, "font-weight": style.fontWeight, "font-style": style.fontStyle,
      direction: style.direction, ...filled(style.color)});
    const under = parent.closest?.("button, span") ?? parent, lined = getComputedStyle(under).textDecorationLine;
    if (lined !== "none") made.setAttribute("text-decoration", lined);
    made.textContent = shown;
    group.append(made);
  }
}

/** The lines that a text node is broken into, with their start and end offsets. */
function linesOf(text) {
  const range = document.createRange(), lines = [];
  for (const {index, 0: word} of text.data.matchAll(/\S+/g)) {
    range.setStart(text, index);
    range.setEnd(text, index + word.length);
    const {top, height} = range.getBoundingClientRect(), last = lines[lines.length - 1];
    if (last && Math.abs(last.top - top) < height / 2) last.end = index + word.length;
    else lines.push({top, start: index, end: index + word.length});
  }
  return lines.map(({start, end}) => ({start, end, line: text.data.slice(start, end).replace(/\s+/g, " ")}));
}

// Save a picture made of SVG and HTML as PNG or as a self-contained SVG, with styles as attributes. Everything visible
// keeps its position.

import {SVG, button, element, svgElement} from "./elements.js";
import {tr} from "./translate.js";

/** CSS properties of SVG shapes that are copied to attributes. */
const COPIED_STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-linecap", "stroke-linejoin",
  "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];
/** PNG pixels per CSS pixel, and the maximum width and height of a PNG. */
const PNG_SCALE = 2, MAX_PNG_SIDE = 8000;
/** Margin around the picture in pixels. */
const MARGIN_AROUND = 12;

/** Create buttons that save a picture.
 * @param {() => {root: HTMLElement, file: string, label: string, skip?: string}} pictureOf returns the arguments of
 * `svgOf`, and the file name @returns {any} */
export function saveButtons(pictureOf) {
  const save = async (format) => {
    const {root, file, ...options} = pictureOf();
    if (!root.offsetHeight) return; // nothing is drawn yet
    const svg = svgOf(root, options);
    const blob = format === "svg" ? new Blob([svg], {type: "image/svg+xml"}) : await asPng(svg);
    download(blob, `${file.replace(/[^\p{L}\p{N}._-]+/gu, "-")}.${format}`);
  };
  const buttons = ["png", "svg"].map((format) => {
    const text = format.toUpperCase();
    return button({text, label: tr("Save the picture as {format}", {format: text}), onClick: () => save(format)});
  });
  return element("div", {className: "save-picture"}, tr("Save as"), ...buttons);
}

/** A picture as SVG. It must be displayed, since positions are measured.
 * @param {HTMLElement} root the element that contains it
 * @param {{label: string, skip?: string}} options title, and a selector of elements to leave out @returns {string} */
function svgOf(root, {label, skip = ""}) {
  const frame = root.getBoundingClientRect(), zoom = frame.width / root.offsetWidth || 1;
  const width = Math.ceil(frame.width / zoom) + 2 * MARGIN_AROUND, height = Math.ceil(frame.height / zoom) + 2 * MARGIN_AROUND;
  const corner = {x: -MARGIN_AROUND, y: -MARGIN_AROUND};
  const svg = svgElement("svg", {xmlns: SVG, width, height, viewBox: `${corner.x} ${corner.y} ${width} ${height}`});
  svg.append(svgElement("title", {}, label), svgElement("rect", {...corner, width, height, ...fillOf(backgroundOf(root))}));
  const place = (box) => ({x: (box.left - frame.left) / zoom, y: (box.top - frame.top) / zoom,
    width: box.width / zoom, height: box.height / zoom});
  copyVisible(root, svg, {place, skip, clips: {n: 0}});
  return new XMLSerializer().serializeToString(svg).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "");
}

/** @returns {Promise<Blob>} */
async function asPng(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const scale = Math.min(PNG_SCALE, MAX_PNG_SIDE / Math.max(image.width, image.height));
  const canvas = element("canvas");
  [canvas.width, canvas.height] = [Math.round(image.width * scale), Math.round(image.height * scale)];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Offer a file to the visitor as a download. @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const KNOWN_COLOURS = new Map();

/** A CSS colour as #rrggbb and opacity, which every SVG reader supports. */
function asHex(colour) {
  if (!KNOWN_COLOURS.has(colour)) {
    const canvas = element("canvas");
    canvas.width = canvas.height = 1;
    const context = canvas.getContext("2d");
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, alpha] = context.getImageData(0, 0, 1, 1).data;
    KNOWN_COLOURS.set(colour, {hex: `#${[r, g, b].map((value) => value.toString(16).padStart(2, "0")).join("")}`, alpha: alpha / 255});
  }
  return KNOWN_COLOURS.get(colour);
}

function fillOf(colour) {
  const {hex, alpha} = asHex(colour);
  return alpha < 1 ? {fill: hex, "fill-opacity": alpha} : {fill: hex};
}

/** The nearest opaque background colour of an element and its ancestors; white if there is none. */
function backgroundOf(root) {
  for (let node = root; node; node = node.parentElement ?? node.getRootNode().host) {
    const {backgroundColor} = getComputedStyle(node);
    if (asHex(backgroundColor).alpha === 1) return backgroundColor;
  }
  return "#ffffff";
}

/** Copy the visible parts of an element into a group. `context` holds the function that measures positions (`place`), and
 * in rotated elements the unrotated box (`upright`). */
function copyVisible(node, group, context) {
  const style = getComputedStyle(node);
  const isHidden = style.display === "none" || style.visibility !== "visible" || Number(style.opacity) === 0;
  if (isHidden || (context.skip && node.matches(context.skip))) return;
  if (Number(style.opacity) < 1) group = group.appendChild(svgElement("g", {opacity: style.opacity}));
  if (node instanceof SVGSVGElement) return void group.append(styledCopy(node, context.place(node.getBoundingClientRect())));
  const rotated = rotatedGroup(node, style, context);
  if (rotated) {
    group = group.appendChild(rotated);
    context = {...context, upright: {x: 0, y: 0, width: node.offsetWidth, height: node.offsetHeight}};
  }
  const box = context.upright ?? context.place(node.getBoundingClientRect());
  if (node instanceof HTMLCanvasElement) {
    if (node.width && node.height) {
      group.append(svgElement("image", {...box, href: node.toDataURL(), preserveAspectRatio: "none", "image-rendering": "pixelated"}));
    }
    return;
  }
  drawBackground(style, box, group);
  if (style.overflowX !== "visible" && node.scrollWidth > node.clientWidth + 1 && style.textOverflow !== "ellipsis") {
    const id = `clip${context.clips.n++}`, clip = group.appendChild(svgElement("clipPath", {id}));
    clip.append(svgElement("rect", box));
    group = group.appendChild(svgElement("g", {"clip-path": `url(#${id})`}));
  }
  for (const child of node.childNodes) {
    if (child instanceof Element) copyVisible(child, group, context);
    else if (child instanceof Text && child.data.trim()) drawText(child, node, style, group, context);
  }
}

/** A group with the transform of a rotated element, in which it is drawn unrotated at the origin; null if not rotated. */
function rotatedGroup(node, {transform, transformOrigin}, context) {
  const {a, b, c, d, e, f} = new DOMMatrix(transform === "none" ? "" : transform);
  if ((!b && !c) || !node.offsetParent) return null;
  const {x, y} = context.place(node.offsetParent.getBoundingClientRect()), [ox, oy] = transformOrigin.split(" ").map(Number.parseFloat);
  return svgElement("g", {transform: `translate(${x + node.offsetLeft + ox} ${y + node.offsetTop + oy}) `
    + `matrix(${a} ${b} ${c} ${d} ${e} ${f}) translate(${-ox} ${-oy})`});
}

/** A copy of an SVG with its styles as attributes. */
function styledCopy(svg, box) {
  const copy = /** @type {any} */ (svg.cloneNode(true)), copies = [copy, ...copy.querySelectorAll("*")];
  [svg, ...svg.querySelectorAll("*")].forEach((original, number) => {
    const style = getComputedStyle(original), node = copies[number];
    for (const {name} of [...node.attributes]) {
      if (/^(class|style|tabindex|role|(data|aria)-.*)$/.test(name)) node.removeAttribute(name);
    }
    if (style.display === "none") return node.setAttribute("display", "none");
    for (const name of COPIED_STYLES) {
      const value = style.getPropertyValue(name);
      const isColour = (name === "fill" || name === "stroke") && value !== "none" && !value.startsWith("url");
      node.setAttribute(name, isColour ? asHex(value).hex : value);
      if (isColour && asHex(value).alpha < 1) {
        node.setAttribute(`${name}-opacity`, String(asHex(value).alpha * Number(style.getPropertyValue(`${name}-opacity`))));
      }
    }
  });
  for (const [name, value] of Object.entries(box)) copy.setAttribute(name, String(Math.round(value * 100) / 100));
  copy.setAttribute("overflow", "visible");
  return copy;
}

/** Draw an element's background and border, with rounded corners. */
function drawBackground(style, box, group) {
  const line = ["Top", "Right", "Bottom", "Left"].every((side) => style[`border${side}Style`] !== "none")
    ? Number.parseFloat(style.borderTopWidth) : 0;
  const background = asHex(style.backgroundColor), edge = asHex(style.borderTopColor);
  if (!background.alpha && !(line && edge.alpha)) return;
  group.append(svgElement("rect", {x: box.x + line / 2, y: box.y + line / 2, width: Math.max(0, box.width - line), height: Math.max(0, box.height - line),
    rx: Math.min(Number.parseFloat(style.borderTopLeftRadius) || 0, box.height / 2),
    ...(background.alpha ? fillOf(style.backgroundColor) : {fill: "none"}),
    ...(line && edge.alpha ? {stroke: edge.hex, "stroke-opacity": edge.alpha, "stroke-width": line} : {})}));
}

/** Draw a text node line by line at its position. */
function drawText(text, parent, style, group, {place, upright}) {
  const range = document.createRange(), canvas = element("canvas").getContext("2d");
  canvas.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const {fontBoundingBoxAscent: ascent, fontBoundingBoxDescent: descent} = canvas.measureText("x");
  const isRtl = style.direction === "rtl";
  for (const {line, start, end} of linesOf(text)) {
    range.setStart(text, start);
    range.setEnd(text, end);
    const drawn = range.getBoundingClientRect();
    // Leave out the lines that -webkit-line-clamp hides.
    if (style.webkitLineClamp !== "none" && drawn.top >= parent.getBoundingClientRect().bottom - 2) return;
    const box = place(drawn);
    let [x, y, width] = [box.x, box.y + (box.height - ascent - descent) / 2 + ascent, box.width];
    if (upright) {
      width = canvas.measureText(line).width;
      [x, y] = [Number.parseFloat(style.paddingLeft), (upright.height - ascent - descent) / 2 + ascent];
    }
    let shown = line;
    const available = parent.clientWidth;
    if (style.textOverflow === "ellipsis" && parent.scrollWidth > available) {
      while (shown && canvas.measureText(`${shown}…`).width > available) shown = shown.slice(0, -1);
      shown += "…";
      width = canvas.measureText(shown).width;
    }
    const node = svgElement("text", {x: isRtl ? x + width : x, y, textLength: width, lengthAdjust: "spacingAndGlyphs", "xml:space": "preserve",
      "font-family": style.fontFamily, "font-size": style.fontSize, "font-weight": style.fontWeight, "font-style": style.fontStyle,
      direction: style.direction, ...fillOf(style.color)});
    const {textDecorationLine} = getComputedStyle(parent.closest?.("button, span") ?? parent);
    if (textDecorationLine !== "none") node.setAttribute("text-decoration", textDecorationLine);
    node.textContent = shown;
    group.append(node);
  }
}

/** The lines into which a text node is broken, with their start and end offsets. */
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

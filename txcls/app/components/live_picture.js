// The picture on a page of the app: it follows the text box at every key press and computes in the browser, not on the
// server. Switched heads and opened parts are sent to the server for the URL and the other pages.

const NAMES = /^(\d+)\.(\d+)$/;
/** Milliseconds between checks of the text box: Streamlit may change it after the picture, without an input event. */
const LOOK_MS = 250;

export default function ({data, parentElement, setStateValue, setTriggerValue}) {
  const root = parentElement.querySelector(".picture");
  const picture = (root.txcls ??= newPicture(root));
  Object.assign(picture, {data, setStateValue, setTriggerValue});
  picture.machine.question = data.question;
  // Heads that were switched here keep their state until the server has confirmed it.
  if (!picture.isPending || String([...picture.off].sort()) === String(data.off)) {
    picture.off = new Set(data.off);
    picture.isPending = false;
  }
  picture.update();
  const typed = (event) => picture.typed(event), pressed = (event) => picture.machine.pressed(event);
  const arrived = () => picture.arrived();
  picture.stop?.();
  const looks = setInterval(() => picture.follow(), LOOK_MS);
  document.addEventListener("input", typed);
  document.addEventListener("keydown", pressed);
  window.addEventListener("txcls-classifier", arrived);
  picture.stop = () => {
    clearInterval(looks);
    document.removeEventListener("input", typed);
    document.removeEventListener("keydown", pressed);
    window.removeEventListener("txcls-classifier", arrived);
  };
  return picture.stop;
}

function newPicture(root) {
  const picture = {
    off: new Set(), isPending: false, name: "", reader: null,
    machine: new Machine(root, {
      onSwitch: (head) => {
        if (!picture.off.delete(head)) picture.off.add(head);
        picture.isPending = true;
        picture.read(picture.text);
        picture.setTriggerValue("switched", [...picture.off].sort());
      },
      onOpen: (layer, head) => picture.setTriggerValue("opened", [layer, head]),
      onPart: (part) => picture.setTriggerValue("part", part),
    }),
    arrived: () => picture.update(),
    typed: ({target}) => {
      if (target instanceof HTMLTextAreaElement && target.closest(`[class*="st-key-${picture.data.box}"]`)) {
        picture.read(target.value);
      }
    },
    /** Use the server's text and classifier. */
    update() {
      const {name} = picture.data, file = window.txclsClassifiers?.get(name);
      if (!file) {
        picture.machine.clear();
        return;
      }
      if (picture.name !== name) {
        picture.reader = new Reader(unpack(file));
        picture.name = name;
        picture.machine.name = picture.reader.classifier.description.name;
        picture.setStateValue("has", [...window.txclsClassifiers.keys()]);
      }
      picture.read(picture.current());
    },
    /** The text of the page's text box, or the server's text: before it is in the box, Streamlit may draw an empty one. */
    current() {
      const area = document.querySelector(`[class*="st-key-${picture.data.box}"] textarea`);
      return area?.value || (area && area === document.activeElement ? "" : picture.data.text);
    },
    /** Read the text if it has changed since it was last read. */
    follow() {
      const text = picture.current();
      if (text !== picture.text) picture.read(text);
    },
    async read(text) {
      picture.text = text;
      const {reader, data} = picture;
      if (!reader) return;
      const off = [...picture.off].map((name) => NAMES.exec(name)).filter((match) => match)
        .map(([, layer, head]) => ({layer: Number(layer) - 1, head: Number(head) - 1}))
        .filter(({layer, head}) => layer < reader.classifier.model.config.n_layers && head < reader.classifier.model.config.n_heads);
      const result = await reader.read(text, off, data.how);
      if (!result) return;
      const {whole, pass} = result;
      if (!pass.trace) picture.machine.wait();
      else {
        const names = new Set(off.map(({layer, head}) => `${layer + 1}.${head + 1}`));
        picture.machine.show(sceneOf(reader.classifier, pass), {
          off: names, how: data.how, before: pass === whole ? null : whole.probabilities, stories: reader.classifier.description.stories});
      }
      root.dataset.read = text;
    },
  };
  return picture;
}

/** Unpack a classifier from the bytes of txcls.web.export.pack. */
function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const {description, tables} = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return new Classifier(description, buffer.slice(4 + length), tables);
}

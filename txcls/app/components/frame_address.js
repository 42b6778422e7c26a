// In a Space of Hugging Face, the app is in a frame and the address bar belongs to the page around it. That page shows the
// query of the view, so that it can be copied, if the app sends it. No other page gets it, since it contains the text.
const SPACES = "https://huggingface.co";

export default function () {
  const around = location.ancestorOrigins?.[0] ?? (document.referrer && new URL(document.referrer).origin);
  if (window.parent === window || around !== SPACES || window.txclsFrameAddress) return;
  window.txclsFrameAddress = true;
  const send = () => {
    window.parent.postMessage({queryString: location.search.slice(1), hash: location.hash}, SPACES);
  };
  for (const name of ["pushState", "replaceState"]) {
    const change = history[name];
    history[name] = function (...values) {
      change.apply(history, values);
      send();
    };
  }
  window.addEventListener("popstate", send);
  send();
}

// In a Hugging Face Space, the app is in a frame and the address bar belongs to the page around it. If the app sends it
// the view's query, that page shows it, so that it can be copied. No other page gets it, since it contains the text.
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

// A browser's translation replaces text nodes that Streamlit changes later, and the page stops with an error.
export default function () {
  document.documentElement.translate = false;
}

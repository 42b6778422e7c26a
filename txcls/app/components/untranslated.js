// The browser's translation replaces text nodes; when Streamlit then changes one, the page stops with an error.
export default function () {
  document.documentElement.translate = false;
}

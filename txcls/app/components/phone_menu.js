// Closes the menu on a phone, where it covers the page, when another page is chosen and when a page is loaded:
// Streamlit leaves it open, even after a reload.
const EXPAND = '[data-testid="stExpandSidebarButton"]'
const OPEN = '[data-testid="stSidebar"][data-collapsed="false"] [data-testid="stSidebarCollapseButton"] button'

export default function ({ data }) {
  if (window.txclsMenuPage === data.page || !matchMedia("(max-width: 768px)").matches) return
  const isLoaded = window.txclsMenuPage === undefined
  window.txclsMenuPage = data.page
  // On a slow phone, the visitor may have opened the menu before this runs.
  if (isLoaded && performance.getEntriesByType("first-input").length) return
  let tries = 15
  const openedByHand = ({ target }) => {
    if (target.closest?.(EXPAND)) tries = 0
  }
  document.addEventListener("click", openedByHand, true)
  const close = () => {
    const button = document.querySelector(OPEN)
    if (tries && !button) {
      tries--
      setTimeout(close, 100) // the menu may be drawn later than this component
      return
    }
    document.removeEventListener("click", openedByHand, true)
    if (tries) button.click()
  }
  close()
}

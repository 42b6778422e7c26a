// Makes scrollable elements reachable by keyboard: each is a named tab stop while its content overflows. On a phone,
// where Streamlit divides the menu's list into sections, the list roles are removed.
const NAMES = {
  ".katex-display": "Formula",
  '[data-testid="stMarkdownContainer"] table': "Table",
  '[data-testid="stCode"] pre': "Code",
  '[class*="st-key-chart_"], [class*="st-key-grows_"]': "Chart",
  '[data-testid="stVerticalBlock"], [data-testid="stLayoutWrapper"]': "List",
  ".txcls-table, .txcls-terms, .txcls-merges": "Table",
  ".txcls-words": "Words",
}
const MENU = '[data-testid="stSidebarNavItems"], [data-testid="stSidebarNavItems"] li'
const HOLDS_STOPS = "a[href], button, input, select, textarea, summary, [tabindex='0']"

export default function () {
  const sized = new ResizeObserver(() => schedule())
  const updateStops = () => {
    for (const element of document.querySelectorAll(MENU)) element.setAttribute("role", "none")
    for (const [selector, name] of Object.entries(NAMES)) {
      for (const element of document.querySelectorAll(selector)) {
        sized.observe(element)
        const style = getComputedStyle(element)
        const scrolls =
          (element.scrollWidth > element.clientWidth + 1 && /auto|scroll/.test(style.overflowX)) ||
          (element.scrollHeight > element.clientHeight + 1 && /auto|scroll/.test(style.overflowY))
        if (!scrolls === !element.dataset.txclsScrolls) continue
        const stops = [...element.querySelectorAll(HOLDS_STOPS)] // a chart's buttons are hidden on a phone
        if (scrolls && !stops.some((stop) => stop.checkVisibility({ visibilityProperty: true }))) {
          element.dataset.txclsScrolls = "true"
          element.tabIndex = 0
          element.setAttribute("aria-label", `${name}, scrolls`)
          if (element.tagName !== "TABLE") element.setAttribute("role", "group")
        } else if (!scrolls) {
          for (const attribute of ["data-txcls-scrolls", "tabindex", "aria-label", "role"]) element.removeAttribute(attribute)
        }
      }
    }
  }
  let timer
  const schedule = () => {
    timer ??= setTimeout(() => {
      timer = undefined
      updateStops()
    }, 150)
  }
  window.txclsStopScrollers?.()
  const changed = new MutationObserver(schedule)
  changed.observe(document.body, { subtree: true, childList: true })
  document.addEventListener("toggle", schedule, true) // collapsed content has no size
  document.fonts.addEventListener("loadingdone", schedule)
  schedule()
  const stop = () => {
    clearTimeout(timer)
    changed.disconnect()
    sized.disconnect()
    document.removeEventListener("toggle", schedule, true)
    document.fonts.removeEventListener("loadingdone", schedule)
  }
  window.txclsStopScrollers = stop
  return stop
}

// Gives each step of a lesson one entry in the browser's history. Streamlit adds an entry whenever it changes the URL:
// two if a step opens another page, and Back would then return to the old page with the new step.
export default function () {
  if (window.txclsLessonHistory) return
  window.txclsLessonHistory = true
  const { pushState } = history
  const stepOf = (address) => ["lesson", "step"].map((name) => address.searchParams.get(name)).join(" ")
  history.pushState = function (state, unused, url) {
    const here = new URL(location.href), there = new URL(url ?? "", here)
    const isSameStep = there.searchParams.has("lesson") && stepOf(here) === stepOf(there)
    return isSameStep ? history.replaceState(state, unused, url) : pushState.call(history, state, unused, url)
  }
}

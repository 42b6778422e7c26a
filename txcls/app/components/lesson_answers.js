// Stores a lesson's answers in this browser for reloads and other tabs. If the browser forbids this, for example in a
// frame of another site, the answers last as long as the session.
export default function ({ data, setTriggerValue }) {
  const key = `txcls-lesson-${data.name}`
  try {
    const stored = localStorage.getItem(key)
    if (data.answers === null) {
      if (stored) setTriggerValue("stored", stored)
    } else if (Object.keys(data.answers).length) {
      // Another tab may have stored answers to other questions.
      localStorage.setItem(key, JSON.stringify({ ...JSON.parse(stored ?? "{}"), ...data.answers }))
    } else localStorage.removeItem(key)
  } catch {}
}

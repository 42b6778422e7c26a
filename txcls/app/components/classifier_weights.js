// Stores a classifier's weights in this browser tab for the pictures; see widgets.py for the format.
export default function ({ data }) {
  if (!data) return
  const length = new DataView(data.buffer, data.byteOffset, data.byteLength).getUint32(0, true)
  const name = new TextDecoder().decode(data.subarray(8, 8 + length))
  const classifiers = (window.txclsClassifiers ??= new Map())
  if (classifiers.has(name)) return
  classifiers.set(name, data.slice(8 + length + (-length & 7)).buffer)
  window.dispatchEvent(new Event("txcls-classifier"))
}

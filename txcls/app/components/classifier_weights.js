// Keeps a classifier's weights in this browser tab for the pictures; see machine.py for the format.
export default function ({ data }) {
  if (!data) return
  const start = data.byteOffset, numbers = new DataView(data.buffer, start, data.byteLength)
  const length = numbers.getUint32(0, true)
  const name = new TextDecoder().decode(data.subarray(8, 8 + length))
  const kept = (window.txclsClassifiers ??= new Map())
  if (kept.has(name)) return
  kept.set(name, data.slice(8 + length + (-length & 7)).buffer)
  window.dispatchEvent(new Event("txcls-classifier"))
}

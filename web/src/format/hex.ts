const perRow = 16

/** Lines of offset, bytes and characters, as in a hex editor. */
export function formatHex(bytes: Uint8Array, maxBytes: number): string {
  const shown = bytes.subarray(0, maxBytes)
  const rows: string[] = []
  for (let at = 0; at < shown.length; at += perRow) {
    const row = [...shown.subarray(at, at + perRow)]
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0'))
    const columns = `${hex.slice(0, 8).join(' ')}  ${hex.slice(8).join(' ')}`.padEnd(48)
    const text = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.'))
    rows.push(`${at.toString(16).padStart(8, '0')}  ${columns}  ${text.join('')}`)
  }
  return rows.join('\n')
}

/** Undefined: the text is not base64. */
export function decodeBase64(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
  } catch {
    return undefined
  }
}

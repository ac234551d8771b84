/**
 * 64 bits of a text as 16 hex digits, for grouping and never for security. Two lanes multiply and mix the same
 * characters with different odd constants; each is stirred once more at the end so that every bit depends on all.
 */
export function hash64(text: string): string {
  let high = 0x243f6a88
  let low = 0x85a308d3
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    high = Math.imul(high ^ unit, 0x01000193)
    low = Math.imul(low ^ unit, 0x5bd1e995)
    low ^= low >>> 13
  }
  high = stirred(high ^ text.length)
  low = stirred(low ^ high)
  return hex(stirred(high ^ low)) + hex(low)
}

function stirred(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x7feb352d)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b)
  return mixed ^ (mixed >>> 16)
}

function hex(value: number): string {
  return (value >>> 0).toString(16).padStart(8, '0')
}

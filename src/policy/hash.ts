/**
 * A 64-bit hash of a string as 16 hex digits, for grouping only, not for security. Two lanes mix
 * the same characters with different odd constants; a final mix makes every bit depend on all
 * others.
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
  high = mix(high ^ text.length)
  low = mix(low ^ high)
  return hex(mix(high ^ low)) + hex(low)
}

function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x7feb352d)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b)
  return mixed ^ (mixed >>> 16)
}

function hex(value: number): string {
  return (value >>> 0).toString(16).padStart(8, '0')
}

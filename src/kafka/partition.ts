const multiplier = 0x5bd1e995

/** The partition of a key, as the client has it for records that come without one. The client's own way takes ten times as long. */
export function partitionOf(key: Buffer, partitions: number): number {
  return (murmur2(key) >>> 0) % partitions
}

function murmur2(key: Buffer): number {
  const { length } = key
  const whole = length & ~3
  let hash = 0x9747b28c ^ length
  for (let at = 0; at < whole; at += 4) {
    const four = key[at]! | (key[at + 1]! << 8) | (key[at + 2]! << 16) | (key[at + 3]! << 24)
    const mixed = Math.imul(four, multiplier)
    hash = Math.imul(hash, multiplier) ^ Math.imul(mixed ^ (mixed >>> 24), multiplier)
  }
  if (whole < length) {
    for (let at = whole; at < length; at++) hash ^= key[at]! << ((at - whole) * 8)
    hash = Math.imul(hash, multiplier)
  }
  hash = Math.imul(hash ^ (hash >>> 13), multiplier)
  return hash ^ (hash >>> 15)
}

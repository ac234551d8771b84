const multiplier = 0x5bd1e995

/** The partition of a key, as the Java producer computes it, and librdkafka with `murmur2_random`. */
export function partitionOf(key: Buffer, partitions: number): number {
  return hashOf(key) % partitions
}

/**
 * The hash of a key without its sign. The default of our client keeps the sign bit, so that half of all keys would come to another
 * partition than the Java producer puts them in, unless the number of partitions is a power of two. Its `compatibilityPartitioner` agrees
 * with this, and takes ten times as long.
 */
export function hashOf(key: Buffer): number {
  return murmur2(key) & 0x7fffffff
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

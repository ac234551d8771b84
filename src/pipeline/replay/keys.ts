/**
 * The keys of a great many records, each with its first offset. A Map of strings would take several
 * times the time and the memory: here the keys are in one buffer, with a hash table of numbers.
 */
export class Keys {
  #table = new Int32Array(1024)
  #count = 0
  #hashes = new Int32Array(512)
  #offsets = new Float64Array(512)
  /** Where keys end. Each starts at the end of the previous one. */
  #ends = new Float64Array(512)
  #bytes = Buffer.allocUnsafe(16_384)

  /** Returns the existing offset of the key, or adds this one and returns undefined. */
  add(key: Buffer, offset: number): number | undefined {
    // Half of the table stays empty, so that lookups are short.
    if (this.#count * 2 === this.#table.length) this.#grow()
    const hash = hashOf(key)
    const mask = this.#table.length - 1
    let slot = hash & mask
    for (let found = this.#table[slot]!; found > 0; found = this.#table[slot]!) {
      if (this.#is(found - 1, hash, key)) return this.#offsets[found - 1]
      slot = (slot + 1) & mask
    }
    this.#table[slot] = this.#append(key, hash, offset)
    return undefined
  }

  #is(at: number, hash: number, key: Buffer): boolean {
    if (this.#hashes[at] !== hash) return false
    const from = at === 0 ? 0 : this.#ends[at - 1]!
    const to = this.#ends[at]!
    return to - from === key.length && this.#bytes.compare(key, 0, key.length, from, to) === 0
  }

  #append(key: Buffer, hash: number, offset: number): number {
    const at = this.#count++
    const from = at === 0 ? 0 : this.#ends[at - 1]!
    const to = from + key.length
    if (to > this.#bytes.length) {
      const bytes = Buffer.allocUnsafe(Math.max(to, this.#bytes.length * 2))
      this.#bytes.copy(bytes, 0, 0, from)
      this.#bytes = bytes
    }
    this.#bytes.set(key, from)
    this.#hashes[at] = hash
    this.#offsets[at] = offset
    this.#ends[at] = to
    return this.#count
  }

  #grow(): void {
    const size = this.#table.length * 2
    this.#hashes = grown(this.#hashes, new Int32Array(size / 2))
    this.#offsets = grown(this.#offsets, new Float64Array(size / 2))
    this.#ends = grown(this.#ends, new Float64Array(size / 2))
    this.#table = new Int32Array(size)
    for (let at = 0; at < this.#count; at++) {
      let slot = this.#hashes[at]! & (size - 1)
      while (this.#table[slot]! > 0) slot = (slot + 1) & (size - 1)
      this.#table[slot] = at + 1
    }
  }
}

function grown<T extends Int32Array | Float64Array>(from: T, to: T): T {
  to.set(from)
  return to
}

/** FNV-1a with a final mix, so that its lowest bits are as good as the others. */
function hashOf(key: Buffer): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key[at]!, 0x01000193)
  return hash ^ (hash >>> 15)
}

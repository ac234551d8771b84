/**
 * Encodes JS values that JSON cannot represent. The output is JSON; a value without a JSON form
 * becomes a marker, an object with the single key `$`:
 * `{"$":["date","2026-01-01T00:00:00.000Z"]}`. A value that cannot be stored becomes `{"$":["lost",
 * what]}` and is decoded as undefined.
 *
 * Objects, arrays and lost markers are numbered in the order in which they open; `{"$":["ref",
 * number]}` refers to an earlier one. Writer and reader must count alike, so the writer inspects an
 * object before it writes the first child, and never abandons an object that has a number.
 */
export const maxDepth = 500
export const maxNodes = 1_000_000

/** The JSON, and whether a part of the value was lost. Never throws. */
export function encodeValue(value: unknown): { text: string; lossy: boolean } {
  try {
    const writer = new Writer()
    const text = writer.write(value, 0)
    return { text, lossy: writer.lossy }
  } catch {
    return { text: marker(['lost', '"a value too large to write"']), lossy: true }
  }
}

/** Whether an object or array with this prototype is a plain one, of this realm or another. */
export function isPlain(prototype: object | null): boolean {
  if (prototype === Object.prototype || prototype === Array.prototype || prototype === null)
    return true
  if (Array.isArray(prototype)) return true
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf')
}

/**
 * Whether an array has named properties. In the order of keys, names come after indices.
 */
function hasNames(array: readonly unknown[]): boolean {
  const last = Object.keys(array).at(-1)
  return last !== undefined && !/^\d+$/.test(last)
}

/**
 * Whether a marker of the built-in class would lose something: the value is of a subclass, or has
 * own properties.
 */
function hasExtraState(value: object, tag: string, className: string): boolean {
  if (className !== tag && className !== 'Buffer') return true
  return !ArrayBuffer.isView(value) && tag !== 'String' && Object.keys(value).length > 0
}

/** A marker's name, then its arguments as JSON text. */
type Marker = [name: string, ...strings: string[]]

/**
 * The parts of an object to write. Elements and fields are read later: each may be a getter.
 */
type Parts =
  | { kind: 'whole'; marker: Marker }
  | { kind: 'lost'; what: string }
  | { kind: 'list'; items: ArrayLike<unknown>; as?: 'set' }
  | { kind: 'pairs'; pairs: [unknown, unknown][] }
  | { kind: 'fields'; keys: string[]; as?: 'object' | 'error' | 'instance'; className?: string }

class Writer {
  lossy = false
  #nodes = 0
  #nextNumber = 0
  readonly #seen = new Map<object, number>()

  write(value: unknown, depth: number): string {
    switch (typeof value) {
      case 'string':
        return quote(value)
      case 'number':
        if (Number.isFinite(value) && !Object.is(value, -0)) return String(value)
        return marker(['number', Object.is(value, -0) ? '"-0"' : `"${value}"`])
      case 'boolean':
        return String(value)
      case 'undefined':
        return marker(['undefined'])
      case 'bigint':
        return marker(['bigint', `"${digits(value)}"`])
      case 'symbol':
        return this.#writeLost(`symbol ${value.description ?? ''}`)
      case 'function':
        return this.#writeLost(`function ${attempt(() => String(value.name)) ?? ''}`)
      case 'object':
        return value === null ? 'null' : this.#writeObject(value, depth)
    }
  }

  #writeObject(value: object, depth: number): string {
    const known = this.#seen.get(value)
    if (known !== undefined) return marker(['ref', String(known)])
    if (depth > maxDepth) return this.#writeLost(`nested deeper than ${maxDepth}`)
    const parts = attempt(() => this.#inspect(value))
    if (parts === undefined) return this.#writeLost('an object that cannot be read')
    if (parts.kind === 'lost') return this.#writeLost(parts.what)
    this.#seen.set(value, this.#nextNumber++)
    switch (parts.kind) {
      case 'whole':
        return marker(parts.marker)
      case 'list':
        return this.#writeList(parts, depth)
      case 'pairs':
        return this.#writePairs(parts, depth)
      case 'fields':
        return this.#writeFields(value, parts, depth)
    }
  }

  /** Throws when the object cannot be read. */
  #inspect(value: object): Parts {
    const plain = isPlain(Object.getPrototypeOf(value))
    const hidden = Object.getOwnPropertySymbols(value)
    if (hidden.some((key) => Object.prototype.propertyIsEnumerable.call(value, key)))
      this.lossy = true
    if (Array.isArray(value)) {
      if (!plain || hasNames(value)) this.lossy = true
      return { kind: 'list', items: value }
    }
    if (plain) {
      const keys = Object.keys(value)
      return keys.includes('$') ? { kind: 'fields', keys, as: 'object' } : { kind: 'fields', keys }
    }
    const className = attempt(() => String(value.constructor.name)) ?? ''
    const tag = Object.prototype.toString.call(value).slice(8, -1)
    const builtin = attempt(() => inspectBuiltin(value, tag, className))
    if (builtin) {
      if (builtin.kind !== 'fields' && hasExtraState(value, tag, className)) this.lossy = true
      return builtin
    }
    this.lossy = true
    return { kind: 'fields', keys: Object.keys(value), as: 'instance', className }
  }

  #writeList({ items, as }: Extract<Parts, { kind: 'list' }>, depth: number): string {
    const { length } = items
    let out = ''
    let index = 0
    for (; index < length && this.#hasRoom(); index++)
      out += (index > 0 ? ',' : '') + this.#writeProperty(items, index, depth)
    return cut(as ? marker([as, `[${out}]`]) : `[${out}]`, length - index)
  }

  #writePairs({ pairs }: Extract<Parts, { kind: 'pairs' }>, depth: number): string {
    let out = ''
    let index = 0
    for (const [key, value] of pairs) {
      if (!this.#hasRoom()) break
      const comma = index++ > 0 ? ',' : ''
      out += `${comma}[${this.write(key, depth + 1)},${this.write(value, depth + 1)}]`
    }
    return cut(marker(['map', `[${out}]`]), pairs.length - index)
  }

  #writeFields(value: object, parts: Extract<Parts, { kind: 'fields' }>, depth: number): string {
    const { as, className } = parts
    const keys = sortLikeParser(parts.keys)
    let out = ''
    let index = 0
    for (const key of keys) {
      if (!this.#hasRoom()) break
      const comma = index++ > 0 ? ',' : ''
      out += `${comma}${quote(key)}:${this.#writeProperty(value, key, depth)}`
    }
    const name = className === undefined ? [] : [JSON.stringify(className.slice(0, 200))]
    return cut(as ? marker([as, `{${out}}`, ...name]) : `{${out}}`, keys.length - index)
  }

  #writeProperty(holder: object, key: string | number, depth: number): string {
    let value: unknown
    try {
      value = (holder as Record<string | number, unknown>)[key]
    } catch {
      return this.#writeLost('a property that cannot be read')
    }
    return this.write(value, depth + 1)
  }

  #hasRoom(): boolean {
    this.#nodes += 1
    if (this.#nodes > maxNodes) this.lossy = true
    return this.#nodes <= maxNodes
  }

  #writeLost(what: string): string {
    this.lossy = true
    this.#nextNumber += 1
    return marker(['lost', JSON.stringify(what.slice(0, 200).trimEnd())])
  }
}

/** Without join, which would copy nested strings at every level. */
function marker([name, ...strings]: Marker): string {
  let out = `{"$":["${name}"`
  for (const text of strings) out += `,${text}`
  return `${out}]}`
}

/** Marks a container that was cut, with the number of missing entries. */
function cut(text: string, left: number): string {
  return left > 0 ? marker(['cut', text, String(left)]) : text
}

const needsEscape = /[^ !#-[\]-~]/

/** JSON.stringify, but faster for short plain strings, which most strings and keys are. */
function quote(text: string): string {
  return text.length > 100 || needsEscape.test(text) ? JSON.stringify(text) : `"${text}"`
}

/**
 * The order in which the reader gets the keys: JSON.parse puts indices first; an Error or a proxy
 * may not.
 */
function sortLikeParser(keys: string[]): string[] {
  if (!keys.some((key) => key >= '0' && key < ':')) return keys
  return Object.keys(Object.fromEntries(keys.map((key) => [key, 0])))
}

/** The result of `read`, or undefined if it throws. */
export function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Huge bigints are written in hexadecimal: computing their decimal digits can take minutes. */
function digits(value: bigint): string {
  if (BigInt.asIntN(4096, value) === value) return value.toString()
  return value < 0n ? `-0x${(-value).toString(16)}` : `0x${value.toString(16)}`
}

/** Properties of an Error that Object.keys does not list. */
export const errorFields = ['name', 'message', 'stack', 'cause', 'errors']
const unstorable = ['Promise', 'WeakMap', 'WeakSet', 'WeakRef', 'Generator', 'AsyncGenerator']

/**
 * Returns undefined or throws if the value is not a built-in. A tag can be faked, so each case
 * calls a method that works only on the real class.
 */
function inspectBuiltin(value: object, tag: string, className: string): Parts | undefined {
  if (ArrayBuffer.isView(value)) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    return bytesMarker(className === 'Buffer' ? 'Buffer' : tag, bytes)
  }
  if (value instanceof Error || tag === 'Error') {
    const own = Object.keys(value).filter((key) => !errorFields.includes(key))
    const keys = [...errorFields.filter((key) => key in value), ...own]
    return { kind: 'fields', keys, as: 'error' }
  }
  switch (tag) {
    case 'Date': {
      const ms = Date.prototype.getTime.call(value)
      const text = Number.isNaN(ms) ? 'null' : `"${new Date(ms).toISOString()}"`
      return { kind: 'whole', marker: ['date', text] }
    }
    case 'Map': {
      const pairs: [unknown, unknown][] = []
      Map.prototype.forEach.call(value, (item, key) => pairs.push([key, item]))
      return { kind: 'pairs', pairs }
    }
    case 'Set': {
      const items: unknown[] = []
      Set.prototype.forEach.call(value, (item) => items.push(item))
      return { kind: 'list', items, as: 'set' }
    }
    case 'RegExp': {
      const { source, flags } = new RegExp(value as RegExp)
      return { kind: 'whole', marker: ['regexp', JSON.stringify(source), `"${flags}"`] }
    }
    case 'URL':
      return { kind: 'whole', marker: ['url', JSON.stringify(new URL((value as URL).href).href)] }
    case 'ArrayBuffer':
      return bytesMarker(tag, Buffer.from(ArrayBuffer.prototype.slice.call(value, 0)))
    case 'String': // As fields it would have one key per character.
      return {
        kind: 'whole',
        marker: ['boxed', JSON.stringify(String.prototype.valueOf.call(value))],
      }
    default:
      return unstorable.includes(tag) ? { kind: 'lost', what: `a ${tag}` } : undefined
  }
}

function bytesMarker(kind: string, bytes: Buffer): Parts | undefined {
  if (!byteKinds.has(kind)) return undefined
  return { kind: 'whole', marker: ['bytes', `"${kind}"`, `"${bytes.toString('base64')}"`] }
}

/** Constructors of byte containers by name. */
export const byteKinds = new Map<string, (buffer: ArrayBuffer) => object>([
  ['Buffer', (buffer) => Buffer.from(buffer)],
  ['ArrayBuffer', (buffer) => buffer],
  ['DataView', (buffer) => new DataView(buffer)],
  ['Int8Array', (buffer) => new Int8Array(buffer)],
  ['Uint8Array', (buffer) => new Uint8Array(buffer)],
  ['Uint8ClampedArray', (buffer) => new Uint8ClampedArray(buffer)],
  ['Int16Array', (buffer) => new Int16Array(buffer)],
  ['Uint16Array', (buffer) => new Uint16Array(buffer)],
  ['Int32Array', (buffer) => new Int32Array(buffer)],
  ['Uint32Array', (buffer) => new Uint32Array(buffer)],
  ['Float32Array', (buffer) => new Float32Array(buffer)],
  ['Float64Array', (buffer) => new Float64Array(buffer)],
  ['BigInt64Array', (buffer) => new BigInt64Array(buffer)],
  ['BigUint64Array', (buffer) => new BigUint64Array(buffer)],
])

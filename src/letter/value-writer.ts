/**
 * JS values that JSON has no word for, as JSON text. It reads like the value would in JSON; where
 * JSON has no word stands a marker, an object with the one key `$`:
 * `{"$":["date","2026-01-01T00:00:00.000Z"]}`. What cannot be kept becomes `{"$":["lost", what]}`
 * and reads back as undefined.
 *
 * Objects, arrays and lost markers are numbered in the order in which they open; `{"$":["ref",
 * number]}` means the same one again. Writer and reader count alike, so the writer takes an object
 * apart before it writes the first child, and nothing that has a number is given up halfway.
 */
export const maxDepth = 500
export const maxNodes = 1_000_000

/** The text, and whether something was lost on the way. Never throws. */
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
 * Whether an array has properties beside its elements. Names come after indices in the order of
 * keys.
 */
function hasNames(array: readonly unknown[]): boolean {
  const last = Object.keys(array).at(-1)
  return last !== undefined && !/^\d+$/.test(last)
}

/**
 * Whether there is more to it than the built-in class knows: it is of a subclass, or has properties
 * of its own.
 */
function hasMore(value: object, tag: string, className: string): boolean {
  if (className !== tag && className !== 'Buffer') return true
  return !ArrayBuffer.isView(value) && tag !== 'String' && Object.keys(value).length > 0
}

/** A marker's name, then its arguments as JSON text. */
type Marker = [name: string, ...strings: string[]]

/**
 * What there is to write of an object. Elements and fields are still to be read: each may be a
 * getter.
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
  #numbers = 0
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
        return this.#lost(`symbol ${value.description ?? ''}`)
      case 'function':
        return this.#lost(`function ${attempt(() => String(value.name)) ?? ''}`)
      case 'object':
        return value === null ? 'null' : this.#object(value, depth)
    }
  }

  #object(value: object, depth: number): string {
    const known = this.#seen.get(value)
    if (known !== undefined) return marker(['ref', String(known)])
    if (depth > maxDepth) return this.#lost(`nested deeper than ${maxDepth}`)
    const parts = attempt(() => this.#takeApart(value))
    if (parts === undefined) return this.#lost('an object that cannot be read')
    if (parts.kind === 'lost') return this.#lost(parts.what)
    this.#seen.set(value, this.#numbers++)
    switch (parts.kind) {
      case 'whole':
        return marker(parts.marker)
      case 'list':
        return this.#list(parts, depth)
      case 'pairs':
        return this.#pairs(parts, depth)
      case 'fields':
        return this.#fields(value, parts, depth)
    }
  }

  /** Throws when the object cannot be read. */
  #takeApart(value: object): Parts {
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
    const builtin = attempt(() => takeApartBuiltin(value, tag, className))
    if (builtin) {
      if (builtin.kind !== 'fields' && hasMore(value, tag, className)) this.lossy = true
      return builtin
    }
    this.lossy = true
    return { kind: 'fields', keys: Object.keys(value), as: 'instance', className }
  }

  #list({ items, as }: Extract<Parts, { kind: 'list' }>, depth: number): string {
    const { length } = items
    let out = ''
    let index = 0
    for (; index < length && this.#hasRoom(); index++)
      out += (index > 0 ? ',' : '') + this.#property(items, index, depth)
    return cut(as ? marker([as, `[${out}]`]) : `[${out}]`, length - index)
  }

  #pairs({ pairs }: Extract<Parts, { kind: 'pairs' }>, depth: number): string {
    let out = ''
    let index = 0
    for (const [key, value] of pairs) {
      if (!this.#hasRoom()) break
      const comma = index++ > 0 ? ',' : ''
      out += `${comma}[${this.write(key, depth + 1)},${this.write(value, depth + 1)}]`
    }
    return cut(marker(['map', `[${out}]`]), pairs.length - index)
  }

  #fields(value: object, parts: Extract<Parts, { kind: 'fields' }>, depth: number): string {
    const { as, className } = parts
    const keys = inOrder(parts.keys)
    let out = ''
    let index = 0
    for (const key of keys) {
      if (!this.#hasRoom()) break
      const comma = index++ > 0 ? ',' : ''
      out += `${comma}${quote(key)}:${this.#property(value, key, depth)}`
    }
    const name = className === undefined ? [] : [JSON.stringify(className.slice(0, 200))]
    return cut(as ? marker([as, `{${out}}`, ...name]) : `{${out}}`, keys.length - index)
  }

  #property(holder: object, key: string | number, depth: number): string {
    let value: unknown
    try {
      value = (holder as Record<string | number, unknown>)[key]
    } catch {
      return this.#lost('a property that cannot be read')
    }
    return this.write(value, depth + 1)
  }

  #hasRoom(): boolean {
    this.#nodes += 1
    if (this.#nodes > maxNodes) this.lossy = true
    return this.#nodes <= maxNodes
  }

  #lost(what: string): string {
    this.lossy = true
    this.#numbers += 1
    return marker(['lost', JSON.stringify(what.slice(0, 200).trimEnd())])
  }
}

/** Not with join, which would copy what is nested at every level. */
function marker([name, ...strings]: Marker): string {
  let out = `{"$":["${name}"`
  for (const text of strings) out += `,${text}`
  return `${out}]}`
}

/** Says where a container ends early, and how much of it is missing. */
function cut(text: string, left: number): string {
  return left > 0 ? marker(['cut', text, String(left)]) : text
}

const needsEscape = /[^ !#-[\]-~]/

/** JSON.stringify, but faster for the short plain text that most strings and keys are. */
function quote(text: string): string {
  return text.length > 100 || needsEscape.test(text) ? JSON.stringify(text) : `"${text}"`
}

/**
 * The order in which the reader will meet the keys: a parser puts indices first, an Error or a
 * proxy may not.
 */
function inOrder(keys: string[]): string[] {
  if (!keys.some((key) => key >= '0' && key < ':')) return keys
  return Object.keys(Object.fromEntries(keys.map((key) => [key, 0])))
}

/** What `read` returns, undefined when it throws. */
export function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** The decimal digits of a huge one can take minutes to compute; its hexadecimal ones do not. */
function digits(value: bigint): string {
  if (BigInt.asIntN(4096, value) === value) return value.toString()
  return value < 0n ? `-0x${(-value).toString(16)}` : `0x${value.toString(16)}`
}

/** What an Error has without listing it among its keys. */
export const errorFields = ['name', 'message', 'stack', 'cause', 'errors']
const unkeepable = ['Promise', 'WeakMap', 'WeakSet', 'WeakRef', 'Generator', 'AsyncGenerator']

/**
 * Undefined, or a throw, when it is no built-in after all: a tag can be claimed by anyone, so each
 * case calls something that only the real thing answers to.
 */
function takeApartBuiltin(value: object, tag: string, className: string): Parts | undefined {
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
    case 'String': // Its keys would be as many as its characters.
      return {
        kind: 'whole',
        marker: ['boxed', JSON.stringify(String.prototype.valueOf.call(value))],
      }
    default:
      return unkeepable.includes(tag) ? { kind: 'lost', what: `a ${tag}` } : undefined
  }
}

function bytesMarker(kind: string, bytes: Buffer): Parts | undefined {
  if (!byteKinds.has(kind)) return undefined
  return { kind: 'whole', marker: ['bytes', `"${kind}"`, `"${bytes.toString('base64')}"`] }
}

/** What bytes are given back as, made from a buffer of their own. */
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

import { attempt, byteKinds, errorFields, maxDepth } from './value-writer.ts'

/**
 * The value again. Throws a SyntaxError or TypeError when the text is not what `encodeValue`
 * writes.
 */
export function decodeValue(text: string): unknown {
  try {
    return new Reader().read(JSON.parse(text), 0)
  } catch (error) {
    // The parser quotes the text it stumbles over, and what a payload holds has no place in a
    // message.
    if (error instanceof SyntaxError) throw new SyntaxError('the payload is not valid JSON')
    if (error instanceof TypeError) throw error
    throw new TypeError('the payload is not a value of ours', { cause: error })
  }
}

/** Deeper than the writer goes: a cut container is a level of its own. */
const maxReadDepth = 2 * maxDepth + 2

class Reader {
  readonly #made: unknown[] = []

  read(node: unknown, depth: number): unknown {
    if (typeof node !== 'object' || node === null) return node
    if (depth > maxReadDepth) throw new TypeError(`the payload is nested deeper than ${maxDepth}`)
    if (Array.isArray(node)) return this.#items(this.#keep(node), node, depth)
    return Object.hasOwn(node, '$')
      ? this.#marked(node as Record<string, unknown>, depth)
      : this.#fields(node, depth)
  }

  #marked(node: Record<string, unknown>, depth: number): unknown {
    const given = node['$']
    if (!Array.isArray(given) || Object.keys(node).length !== 1) throw malformed('')
    const [name, first, second] = given as unknown[]
    switch (name) {
      case 'undefined':
        return undefined
      case 'lost':
        return this.#keep(undefined)
      case 'ref':
        return this.#again(first)
      case 'cut':
        return this.read(first, depth + 1)
      case 'object':
      case 'instance':
        return this.#fields(fieldsOf(first, name), depth)
      case 'error':
        return this.#error(fieldsOf(first, name), depth)
      case 'map':
        return this.#map(listOf(first, name), depth)
      case 'set':
        return this.#set(listOf(first, name), depth)
      case 'number':
      case 'bigint':
        return scalars[name](textOf(first, name))
      case 'date':
        return this.#keep(first === null ? new Date(Number.NaN) : dateOf(textOf(first, name)))
      case 'regexp':
        return this.#keep(made(name, () => new RegExp(textOf(first, name), textOf(second, name))))
      case 'url':
        return this.#keep(made(name, () => new URL(textOf(first, name))))
      case 'boxed':
        return this.#keep(textOf(first, name))
      case 'bytes':
        return this.#keep(bytesOf(textOf(first, name), textOf(second, name)))
      default:
        throw malformed('of an unknown kind')
    }
  }

  #keep<T>(made: T): T {
    this.#made.push(made)
    return made
  }

  #again(number: unknown): unknown {
    if (typeof number !== 'number' || !(number in this.#made)) throw malformed('ref')
    return this.#made[number]
  }

  #items(into: unknown[], nodes: readonly unknown[], depth: number): unknown[] {
    for (const [index, node] of nodes.entries()) into[index] = this.read(node, depth + 1)
    return into
  }

  /**
   * In place: the parser has made every key an own property, `__proto__` too, and assigning keeps
   * it so.
   */
  #fields(node: object, depth: number): object {
    const fields = this.#keep(node as Record<string, unknown>)
    for (const key of Object.keys(fields)) fields[key] = this.read(fields[key], depth + 1)
    return fields
  }

  #map(pairs: unknown[], depth: number): Map<unknown, unknown> {
    const map = this.#keep(new Map<unknown, unknown>())
    for (const pair of pairs) {
      const [key, value] = listOf(pair, 'map')
      map.set(this.read(key, depth + 1), this.read(value, depth + 1))
    }
    return map
  }

  #set(items: unknown[], depth: number): Set<unknown> {
    const set = this.#keep(new Set<unknown>())
    for (const item of items) set.add(this.read(item, depth + 1))
    return set
  }

  #error(fields: Record<string, unknown>, depth: number): Error {
    const error = this.#keep(newError(fields['name']))
    for (const key of Object.keys(fields)) {
      const value = this.read(fields[key], depth + 1)
      if (key === 'name' && value === error.name) continue
      const enumerable = !errorFields.includes(key)
      Object.defineProperty(error, key, { value, enumerable, writable: true, configurable: true })
    }
    return error
  }
}

function newError(name: unknown): Error {
  switch (name) {
    case 'TypeError':
      return new TypeError()
    case 'RangeError':
      return new RangeError()
    case 'SyntaxError':
      return new SyntaxError()
    case 'ReferenceError':
      return new ReferenceError()
    case 'EvalError':
      return new EvalError()
    case 'URIError':
      return new URIError()
    case 'AggregateError':
      return new AggregateError([])
    default:
      return new Error()
  }
}

const scalars = {
  number: (text: string): number => {
    if (!['NaN', 'Infinity', '-Infinity', '-0'].includes(text)) throw malformed('number')
    return Number(text)
  },
  bigint: (text: string): bigint => {
    if (!/^-?(\d+|0x[\da-f]+)$/.test(text)) throw malformed('bigint')
    return text.startsWith('-') ? -BigInt(text.slice(1)) : BigInt(text)
  },
}

function dateOf(text: string): Date {
  const date = new Date(text)
  if (Number.isNaN(date.getTime())) throw malformed('date')
  return date
}

/** What `make` makes; when it refuses, it is the marker that is wrong. */
function made<T extends object>(name: string, make: () => T): T {
  const result = attempt(make)
  if (result === undefined) throw malformed(name)
  return result
}

function bytesOf(kind: string, base64: string): object {
  const make = byteKinds.get(kind)
  if (!make || base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64))
    throw malformed('bytes')
  return made('bytes', () => make(new Uint8Array(Buffer.from(base64, 'base64')).buffer))
}

function textOf(value: unknown, name: string): string {
  if (typeof value !== 'string') throw malformed(name)
  return value
}

function listOf(value: unknown, name: string): unknown[] {
  if (!Array.isArray(value)) throw malformed(name)
  return value
}

function fieldsOf(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed(name)
  return value as Record<string, unknown>
}

function malformed(name: string): TypeError {
  return new TypeError(`the payload has a malformed marker ${name}`.trimEnd())
}

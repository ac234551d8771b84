import { attempt, byteKinds, errorFields, maxDepth } from './value-writer.ts'

/**
 * Decodes the output of `encodeValue`. Throws a SyntaxError or TypeError for any other string.
 */
export function decodeValue(text: string): unknown {
  try {
    return new Reader().read(JSON.parse(text), 0)
  } catch (error) {
    // The message of the parser quotes the payload, which must not appear in an error message.
    if (error instanceof SyntaxError) throw new SyntaxError('the payload is not valid JSON')
    if (error instanceof TypeError) throw error
    throw new TypeError('the payload is not a valid encoded value', { cause: error })
  }
}

/** More than the depth of the writer: each cut container adds a level. */
const maxReadDepth = 2 * maxDepth + 2

class Reader {
  readonly #objects: unknown[] = []

  read(node: unknown, depth: number): unknown {
    if (typeof node !== 'object' || node === null) return node
    if (depth > maxReadDepth) throw new TypeError(`the payload is nested deeper than ${maxDepth}`)
    if (Array.isArray(node)) return this.#readItems(this.#register(node), node, depth)
    return Object.hasOwn(node, '$')
      ? this.#readMarker(node as Record<string, unknown>, depth)
      : this.#readFields(node, depth)
  }

  #readMarker(node: Record<string, unknown>, depth: number): unknown {
    const given = node['$']
    if (!Array.isArray(given) || Object.keys(node).length !== 1) throw malformedMarker('')
    const [name, first, second] = given as unknown[]
    switch (name) {
      case 'undefined':
        return undefined
      case 'lost':
        return this.#register(undefined)
      case 'ref':
        return this.#resolveReference(first)
      case 'cut':
        return this.read(first, depth + 1)
      case 'object':
      case 'instance':
        return this.#readFields(fieldsOf(first, name), depth)
      case 'error':
        return this.#readError(fieldsOf(first, name), depth)
      case 'map':
        return this.#readMap(listOf(first, name), depth)
      case 'set':
        return this.#readSet(listOf(first, name), depth)
      case 'number':
      case 'bigint':
        return scalars[name](textOf(first, name))
      case 'date':
        return this.#register(first === null ? new Date(Number.NaN) : dateOf(textOf(first, name)))
      case 'regexp':
        return this.#register(
          create(name, () => new RegExp(textOf(first, name), textOf(second, name))),
        )
      case 'url':
        return this.#register(create(name, () => new URL(textOf(first, name))))
      case 'boxed':
        return this.#register(textOf(first, name))
      case 'bytes':
        return this.#register(bytesOf(textOf(first, name), textOf(second, name)))
      default:
        throw malformedMarker('of an unknown kind')
    }
  }

  #register<T>(object: T): T {
    this.#objects.push(object)
    return object
  }

  #resolveReference(number: unknown): unknown {
    if (typeof number !== 'number' || !(number in this.#objects)) throw malformedMarker('ref')
    return this.#objects[number]
  }

  #readItems(into: unknown[], nodes: readonly unknown[], depth: number): unknown[] {
    for (const [index, node] of nodes.entries()) into[index] = this.read(node, depth + 1)
    return into
  }

  /**
   * Reads in place: JSON.parse made every key an own property, including `__proto__`, so
   * assignments are safe.
   */
  #readFields(node: object, depth: number): object {
    const fields = this.#register(node as Record<string, unknown>)
    for (const key of Object.keys(fields)) fields[key] = this.read(fields[key], depth + 1)
    return fields
  }

  #readMap(pairs: unknown[], depth: number): Map<unknown, unknown> {
    const map = this.#register(new Map<unknown, unknown>())
    for (const pair of pairs) {
      const [key, value] = listOf(pair, 'map')
      map.set(this.read(key, depth + 1), this.read(value, depth + 1))
    }
    return map
  }

  #readSet(items: unknown[], depth: number): Set<unknown> {
    const set = this.#register(new Set<unknown>())
    for (const item of items) set.add(this.read(item, depth + 1))
    return set
  }

  #readError(fields: Record<string, unknown>, depth: number): Error {
    const error = this.#register(newError(fields['name']))
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
    if (!['NaN', 'Infinity', '-Infinity', '-0'].includes(text)) throw malformedMarker('number')
    return Number(text)
  },
  bigint: (text: string): bigint => {
    if (!/^-?(\d+|0x[\da-f]+)$/.test(text)) throw malformedMarker('bigint')
    return text.startsWith('-') ? -BigInt(text.slice(1)) : BigInt(text)
  },
}

function dateOf(text: string): Date {
  const date = new Date(text)
  if (Number.isNaN(date.getTime())) throw malformedMarker('date')
  return date
}

/** The result of `make`. If it throws, the marker is malformed. */
function create<T extends object>(name: string, make: () => T): T {
  const result = attempt(make)
  if (result === undefined) throw malformedMarker(name)
  return result
}

function bytesOf(kind: string, base64: string): object {
  const make = byteKinds.get(kind)
  if (!make || base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64))
    throw malformedMarker('bytes')
  return create('bytes', () => make(new Uint8Array(Buffer.from(base64, 'base64')).buffer))
}

function textOf(value: unknown, name: string): string {
  if (typeof value !== 'string') throw malformedMarker(name)
  return value
}

function listOf(value: unknown, name: string): unknown[] {
  if (!Array.isArray(value)) throw malformedMarker(name)
  return value
}

function fieldsOf(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw malformedMarker(name)
  return value as Record<string, unknown>
}

function malformedMarker(name: string): TypeError {
  return new TypeError(`the payload has a malformed marker ${name}`.trimEnd())
}

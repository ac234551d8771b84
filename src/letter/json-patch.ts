import { isDeepStrictEqual } from 'node:util'
import type { Json } from './letter.ts'
import { tokensOf } from './json-pointer.ts'

/** One operation of a JSON Patch (RFC 6902). Paths are JSON Pointers: `/items/0/price`. */
export type JsonPatchOperation =
  | { op: 'add'; path: string; value: Json }
  | { op: 'remove'; path: string }
  | { op: 'replace'; path: string; value: Json }
  | { op: 'move'; from: string; path: string }
  | { op: 'copy'; from: string; path: string }
  | { op: 'test'; path: string; value: Json }

export type JsonPatch = readonly JsonPatchOperation[]

/** Why an operation cannot be applied, and its index in the patch. */
export class PatchError extends Error {
  index = 0
}

type Container = Json[] | { [key: string]: Json }

/** A value in the document: its container and its key there. The document itself has the key ''. */
interface Place {
  container: Container
  key: string
}

/** The document is the only value of a container, so that it can be replaced like any other. */
const root = ''

/**
 * Applies a patch to a copy of a document. Throws a PatchError if an operation fails. Only own
 * properties are read and written, so that no path leads to a prototype. `checkSize` is called
 * after each `copy`, since copies can grow a document exponentially.
 */
export function applyPatch(
  document: Json,
  patch: JsonPatch,
  checkSize: (document: Json) => void = () => {},
): Json {
  const holder: Container = { [root]: structuredClone(document) }
  for (const [index, operation] of patch.entries())
    try {
      applyOperation(holder, operation)
      if (operation.op === 'copy') checkSize(holder[root]!)
    } catch (error) {
      throw toPatchError(error, index)
    }
  return holder[root]!
}

/** Any other error is a bug. */
function toPatchError(error: unknown, index: number): unknown {
  if (error instanceof RangeError)
    return toPatchError(new PatchError('it is nested too deep'), index)
  if (error instanceof PatchError) error.index = index
  return error
}

function applyOperation(holder: Container, operation: JsonPatchOperation): void {
  const { op } = operation
  switch (op) {
    case 'add':
      return add(placeOf(holder, operation.path), structuredClone(operation.value))
    case 'remove':
      remove(existing(holder, operation.path), operation.path)
      return
    case 'replace':
      return write(existing(holder, operation.path), structuredClone(operation.value))
    case 'test':
      if (!isDeepStrictEqual(read(existing(holder, operation.path)), operation.value))
        throw new PatchError('the value differs')
      return
    case 'copy':
      return add(
        placeOf(holder, operation.path),
        structuredClone(read(existing(holder, operation.from))),
      )
    case 'move': {
      const { from, path } = operation
      if (path.startsWith(`${from}/`)) throw new PatchError('a value cannot move into itself')
      const value = read(existing(holder, from))
      if (from === path) return
      remove(existing(holder, from), from)
      return add(placeOf(holder, path), value)
    }
  }
}

/** Where a pointer leads. All but its last token must exist. */
function placeOf(holder: Container, pointer: string): Place {
  let place: Place = { container: holder, key: root }
  for (const token of tokensOf(pointer)!) {
    const value = exists(place) ? read(place) : undefined
    if (typeof value !== 'object' || value === null)
      throw new PatchError(`no object or array contains ${JSON.stringify(token)}`)
    place = { container: value, key: token }
  }
  return place
}

function existing(holder: Container, pointer: string): Place {
  const place = placeOf(holder, pointer)
  if (!exists(place)) throw new PatchError(`nothing is at ${JSON.stringify(pointer)}`)
  return place
}

const index = /^(?:0|[1-9]\d*)$/

function exists({ container, key }: Place): boolean {
  if (Array.isArray(container)) return index.test(key) && Number(key) < container.length
  return Object.hasOwn(container, key)
}

function read({ container, key }: Place): Json {
  return (container as { [key: string]: Json })[key]!
}

/** A key named `__proto__` must become a property. */
function write({ container, key }: Place, value: Json): void {
  Object.defineProperty(container, key, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  })
}

/** In an array, `-` is the end, and later values move up. */
function add(place: Place, value: Json): void {
  const { container, key } = place
  if (!Array.isArray(container)) return write(place, value)
  const at = key === '-' ? container.length : index.test(key) ? Number(key) : Infinity
  if (at > container.length)
    throw new PatchError(
      `${JSON.stringify(key)} is not an index of an array of ${container.length} values`,
    )
  container.splice(at, 0, value)
}

function remove({ container, key }: Place, pointer: string): void {
  if (pointer === '') throw new PatchError('the whole document cannot be removed')
  if (Array.isArray(container)) container.splice(Number(key), 1)
  else delete container[key]
}

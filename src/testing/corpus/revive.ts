import { runInNewContext } from 'node:vm'

/** A thrown value as JSON. */
export type ErrorShape = Thrown | { value: unknown }

interface Thrown {
  /**
   * Names of the class and its base classes, nearest first, without Error. Default: none, a plain
   * Error.
   */
  class?: readonly string[]
  /** Default: the name of the class. */
  name?: string
  message: string
  /**
   * Own properties. In their values `{ "$headers": { … } }` becomes a `Headers`, and `{ "$error": …
   * }` an error.
   */
  props?: Readonly<Record<string, unknown>>
  cause?: ErrorShape
  /** Members of an AggregateError or a similar error. */
  errors?: readonly ErrorShape[]
  /** `other`: created in another realm, where `instanceof Error` is false. */
  realm?: 'other'
}

type ErrorClass = new (message: string) => Error

const builtIn: ReadonlyMap<string, ErrorClass> = new Map(
  [TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError].map(
    (each) => [each.name, each] as [string, ErrorClass],
  ),
)

/**
 * Recreates the thrown value: an error with its classes, properties, causes and members, or a plain
 * value.
 */
export function reviveError(shape: ErrorShape): unknown {
  if ('value' in shape) return reviveValue(shape.value)
  const { class: classes = [], message, props = {}, cause, errors } = shape
  const name = shape.name ?? classes[0] ?? 'Error'
  const error =
    classes[0] === 'DOMException'
      ? (new DOMException(message, name) as Error)
      : new (createClass(classes, shape.realm === 'other'))(message)
  if (error.name !== name) defineHidden(error, 'name', name)
  if (cause) defineHidden(error, 'cause', reviveError(cause))
  if (errors) defineHidden(error, 'errors', errors.map(reviveError))
  return Object.assign(error, reviveValue(props))
}

function createClass(classes: readonly string[], inOtherRealm: boolean): ErrorClass {
  if (inOtherRealm) return runInNewContext(classes[0] ?? 'Error') as ErrorClass
  const known = classes.findIndex((name) => builtIn.has(name))
  const base = known < 0 ? Error : builtIn.get(classes[known]!)!
  const own = known < 0 ? classes : classes.slice(0, known)
  return own.reduceRight<ErrorClass>((parent, name) => {
    const derived = class extends parent {}
    return Object.defineProperty(derived, 'name', { value: name })
  }, base)
}

function defineHidden(error: object, key: string, value: unknown): void {
  Object.defineProperty(error, key, { value, configurable: true, writable: true })
}

function reviveValue(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(reviveValue)
  const entries = Object.entries(value) as [string, unknown][]
  const [[key, inner] = []] = entries
  if (key === '$headers') return new Headers(inner as Record<string, string>)
  if (key === '$error') return reviveError(inner as ErrorShape)
  return Object.fromEntries(entries.map(([name, each]) => [name, reviveValue(each)]))
}

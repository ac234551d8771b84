import { runInNewContext } from 'node:vm'

/** What was thrown, written down as JSON. */
export type ErrorShape = Thrown | { value: unknown }

interface Thrown {
  /**
   * Names of its class and of those that it extends, nearest first, without Error. None means a
   * plain Error.
   */
  class?: readonly string[]
  /** Where it differs from the name of its class. */
  name?: string
  message: string
  /**
   * Its own properties. In them, `{ "$headers": { … } }` becomes a `Headers`, and `{ "$error": … }`
   * an error.
   */
  props?: Readonly<Record<string, unknown>>
  cause?: ErrorShape
  /** Members, of an AggregateError and its like. */
  errors?: readonly ErrorShape[]
  /** Made where `instanceof Error` does not know it. */
  realm?: 'other'
}

type ErrorClass = new (message: string) => Error

const builtIn: ReadonlyMap<string, ErrorClass> = new Map(
  [TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError].map(
    (each) => [each.name, each] as [string, ErrorClass],
  ),
)

/**
 * A live thing, as it was thrown: an error with its classes, properties, causes and members, or a
 * plain value.
 */
export function reviveError(shape: ErrorShape): unknown {
  if ('value' in shape) return live(shape.value)
  const { class: classes = [], message, props = {}, cause, errors } = shape
  const name = shape.name ?? classes[0] ?? 'Error'
  const error =
    classes[0] === 'DOMException'
      ? (new DOMException(message, name) as Error)
      : new (classOf(classes, shape.realm === 'other'))(message)
  if (error.name !== name) hide(error, 'name', name)
  if (cause) hide(error, 'cause', reviveError(cause))
  if (errors) hide(error, 'errors', errors.map(reviveError))
  return Object.assign(error, live(props))
}

function classOf(classes: readonly string[], elsewhere: boolean): ErrorClass {
  if (elsewhere) return runInNewContext(classes[0] ?? 'Error') as ErrorClass
  const known = classes.findIndex((name) => builtIn.has(name))
  const base = known < 0 ? Error : builtIn.get(classes[known]!)!
  const own = known < 0 ? classes : classes.slice(0, known)
  return own.reduceRight<ErrorClass>((parent, name) => {
    const made = class extends parent {}
    return Object.defineProperty(made, 'name', { value: name })
  }, base)
}

function hide(error: object, key: string, value: unknown): void {
  Object.defineProperty(error, key, { value, configurable: true, writable: true })
}

function live(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(live)
  const entries = Object.entries(value) as [string, unknown][]
  const [[key, inner] = []] = entries
  if (key === '$headers') return new Headers(inner as Record<string, string>)
  if (key === '$error') return reviveError(inner as ErrorShape)
  return Object.fromEntries(entries.map(([name, each]) => [name, live(each)]))
}

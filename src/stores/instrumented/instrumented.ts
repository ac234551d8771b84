import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { Store, StoreCall } from '../../store.ts'
import { errorTypeOf, isTracing, startSpan, type OpenSpan } from '../../tracing.ts'
import { passThrough } from '../pass-through.ts'

export interface InstrumentedOptions {
  clock: Clock
  /** Gets every call that has ended. Must not throw. */
  onCall?: (call: StoreCall) => void
}

/** Methods whose calls are measured. Those that a store lacks stay absent. */
const methods = [
  'open',
  'close',
  'add',
  'get',
  'original',
  'find',
  'search',
  'tally',
  'totals',
  'stored',
  'keep',
  'keepTotals',
  'claim',
  'renew',
  'apply',
  'applyAll',
  'remove',
  'fsck',
  'health',
] as const satisfies (keyof Store)[]

const recordMethods = ['get', 'put', 'list', 'remove', 'kinds'] as const

type AnyMethod = (...args: unknown[]) => Promise<unknown>

/**
 * Measures every call of a store: duration, error, number of items. A call within a span of the
 * application has a span of its own; the polls of workers have none.
 */
export function instrumentedStore<S extends Store>(store: S, options: InstrumentedOptions): S {
  const measure = measureWith(store.powers.kind, options)
  const members: { [name: string]: unknown } = {
    ...measureAll(store, methods, '', measure),
    records: passThrough(
      store.records,
      measureAll(store.records, recordMethods, 'records.', measure),
    ),
  }
  if (store.within)
    members['within'] = (client: unknown) => {
      const joined = store.within!(client)
      return passThrough(joined, measureAll(joined, ['add'], 'within.', measure))
    }
  return passThrough(store, members)
}

type Measure = (name: string, call: AnyMethod) => AnyMethod

function measureAll(
  thing: object,
  names: readonly string[],
  prefix: string,
  measure: Measure,
): { [name: string]: AnyMethod } {
  const found: { [name: string]: AnyMethod } = {}
  for (const name of names) {
    const method = (thing as { [name: string]: AnyMethod | undefined })[name]
    if (method) found[name] = measure(`${prefix}${name}`, method.bind(thing))
  }
  return found
}

function measureWith(kind: string, { clock, onCall }: InstrumentedOptions): Measure {
  return (method, call) =>
    (...args) => {
      const startedMs = clock.mono()
      const span = isTracing() ? startSpan(() => describe(kind, method, args)) : undefined
      const end = (result: unknown, error?: unknown): void => {
        const items = itemsOf(args[0], result)
        const durationMs = clock.mono() - startedMs
        onCall?.({
          method,
          durationMs,
          ...(items === undefined ? {} : { items }),
          ...(error === undefined ? {} : { code: codeOf(error) }),
        })
        endSpan(span, items, error)
      }
      // Async, so that an error that a driver throws synchronously is measured too.
      const start = async (): Promise<unknown> => call(...args)
      return (span ? span.run(start) : start()).then(
        (result) => {
          end(result)
          return result
        },
        (error: unknown) => {
          end(undefined, error ?? new Error('rejected without a reason'))
          throw error
        },
      )
    }
}

function describe(
  kind: string,
  method: string,
  args: readonly unknown[],
): ReturnType<Parameters<typeof startSpan>[0]> {
  const [first] = args
  const size = Array.isArray(first) && first.length > 1 ? first.length : undefined
  return {
    name: `${method} ${kind}`,
    kind: 'client',
    attributes: {
      'db.system.name': kind,
      'db.operation.name': method,
      'db.operation.batch.size': size,
    },
  }
}

function endSpan(span: OpenSpan | undefined, items: number | undefined, error: unknown): void {
  if (!span) return
  if (items !== undefined) span.set('redrive.items', items)
  if (error !== undefined) span.fail(errorTypeOf(error))
  span.end()
}

/** The number of letters, changes or ids of a call. Undefined: it is not about items. */
function itemsOf(argument: unknown, result: unknown): number | undefined {
  if (Array.isArray(argument)) return argument.length
  if (Array.isArray(result)) return result.length
  if (typeof result !== 'object' || result === null) return undefined
  const { letters, items } = result as { letters?: unknown; items?: unknown }
  const list = letters ?? items
  return Array.isArray(list) ? list.length : undefined
}

/** Codes of the error table are few. Other errors share one value. */
function codeOf(error: unknown): string {
  return error instanceof RedriveError ? error.code : 'UNEXPECTED'
}

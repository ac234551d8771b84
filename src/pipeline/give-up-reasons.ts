import { errorTypeOf, type ErrorType } from './error-type.ts'
import type { Edge } from './graph/settings.ts'
import type { PipeStream } from './stream.ts'

/** Why a node gives up on a record regardless of its module. A retry would not help. */
export function givenUp(errorType: string, message: string): ErrorType {
  const known = errorTypeOf(new Error(message))
  return { ...known, errorType, retry: false }
}

export function tooFar(
  { hopCount, processingPath }: PipeStream,
  maxHops: number,
  to?: string,
): ErrorType {
  const path = processingPath.slice(-5).join(' → ')
  const where = to === undefined ? '' : ` on its way to ${to}`
  return givenUp(
    'MAX_HOPS',
    `the stream passed ${hopCount} nodes${where}, the limit is ${maxHops}: … ${path}`,
  )
}

export function noStore({ content }: PipeStream): ErrorType {
  const at = content.case === 'documentRef' ? ` at ${content.value.location}` : ''
  const message = `the document is stored${at}, but this node has no document store: configure one`
  return givenUp('DOCUMENT_UNAVAILABLE', message)
}

/** Caused by a module that violates its types, or a count that overflows. */
export function unwritable(thrown: unknown): ErrorType {
  const why = thrown instanceof Error ? thrown.message : String(thrown)
  return givenUp('UNWRITABLE', `the result cannot be encoded as a PipeStream: ${why}`)
}

export function tooLarge(next: readonly Edge[]): ErrorType {
  const topics = next.map(({ topic }) => topic).join(', ')
  const message = `the result exceeds the maximum size of ${topics}: configure a document store, or raise max.message.bytes`
  return givenUp('TOO_LARGE', message)
}

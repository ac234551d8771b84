import { errorTypeOf, type ErrorType } from './error-type.ts'
import type { Edge } from './graph/settings.ts'
import type { PipeStream } from './stream.ts'

/** Why a node gives a record up by itself, whatever its module says. To call it again would not help. */
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
  return givenUp('MAX_HOPS', `it had ${hopCount} nodes${where}, ${maxHops} are allowed: … ${path}`)
}

export function noStore({ content }: PipeStream): ErrorType {
  const at = content.case === 'documentRef' ? ` at ${content.value.location}` : ''
  const message = `its document is kept${at}, and this node has no document store: give it one`
  return givenUp('DOCUMENT_UNAVAILABLE', message)
}

/** By a module that does not keep to its types, or a count that is at its end. */
export function unwritable(thrown: unknown): ErrorType {
  const why = thrown instanceof Error ? thrown.message : String(thrown)
  return givenUp('UNWRITABLE', `what came of it cannot be written as a PipeStream: ${why}`)
}

export function tooLarge(next: readonly Edge[]): ErrorType {
  const topics = next.map(({ topic }) => topic).join(', ')
  const message = `what came of it is larger than ${topics} takes: give the node a document store, or raise max.message.bytes`
  return givenUp('TOO_LARGE', message)
}

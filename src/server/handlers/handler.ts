import type { EndpointName, IsStream, OutputOf, ReadInputOf } from '../../api/endpoints.ts'
import type { BulkAction } from '../../letter/bulk-action.ts'
import type { GroupDetail } from '../../letter/group.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import type { Tokens } from '../tokens.ts'
import type { Viewer } from '../viewer.ts'

/** What handlers get besides their input. */
export interface Context {
  dlq: DeadLetterQueue
  tokens: Tokens
  caller: Viewer
  /** The letter of the input, for endpoints whose bounds are `letter`. */
  letter: DeadLetter
  /** The group of the input, for endpoints whose bounds are `group`. */
  group: GroupDetail
  /** The bulk action of the input, for endpoints whose bounds are `action`. */
  action: BulkAction
  /** The version that the letter of the input must still have. Undefined: any. */
  ifVersion: number | undefined
  /** The body, for endpoints whose body is lines. */
  body: AsyncIterable<Uint8Array>
  /** Aborts when the client has gone. */
  signal: AbortSignal
  /** Reports an unexpected error that the response does not show. */
  onError: (error: unknown) => void
}

export type Handlers<N extends EndpointName = EndpointName> = {
  [K in N]: (
    input: ReadInputOf<K>,
    context: Context,
  ) => IsStream<K> extends true ? AsyncIterable<string> : Promise<OutputOf<K>> | OutputOf<K>
}

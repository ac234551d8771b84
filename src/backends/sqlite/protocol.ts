import type { ThreadError } from './errors.ts'

/** Request and response of each method that a thread offers. */
export type MethodTable<M> = { [K in keyof M]: { request: unknown; response: unknown } }

export type CallOf<M extends MethodTable<M>> = {
  [K in keyof M & string]: [id: number, method: K, request: M[K]['request']]
}[keyof M & string]

export type AnyCall = [id: number, method: string, request: unknown]

/** From the caller to the thread. */
export type Message =
  | { kind: 'open'; options: unknown }
  /** Calls that queued up, with the caller's time. */
  | { kind: 'batch'; nowMs: number; calls: AnyCall[] }
  | { kind: 'close' }
  | { kind: 'end' }

/** From the thread to the caller. */
export interface Report {
  results: [id: number, value: unknown][]
  errors: [id: number, error: ThreadError][]
  /** What happened beyond the results of the calls: see `Service.takeEvent`. */
  events: unknown[]
  /**
   * True: the report ends a batch, or confirms that the file is closed. False: it ends no batch.
   */
  isDone: boolean
}

import type { NodePlace } from './graph/topics.ts'

/** Events of nodes. They are emitted after the fact: the broker has confirmed published records. */
export type PipelineEvent = NodePlace &
  (
    | { type: 'routed'; streamId: string }
    /** The module returned success=false, and the stream continued with its document unchanged. */
    | { type: 'logical-failure'; streamId: string; message: string }
    /** The module is called again: 1 is the first retry. */
    | { type: 'retry'; streamId: string; retry: number; errorType: string }
    /**
     * The record is in the DLQ topic, or in the quarantine topic instead. The id is empty if the
     * record is not a stream.
     */
    | {
        type: 'dead-lettered' | 'quarantined'
        streamId: string
        errorType: string
        message: string
        topic: string
      }
    /** A dead record could not be written. It is retried, and the record is not done until then. */
    | { type: 'publish-failed'; topic: string; error: unknown }
    | { type: 'error'; error: unknown }
  )

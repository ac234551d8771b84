import type { NodePlace } from './graph/topics.ts'

/** What nodes tell. It is told after it has happened: what was published, the broker has confirmed. */
export type PipelineEvent = NodePlace &
  (
    | { type: 'routed'; streamId: string }
    /** The module said success=false, and the stream went on with its document as it was. */
    | { type: 'logical-failure'; streamId: string; message: string }
    /** The module is called once more: 1 is the first call after the first. */
    | { type: 'retry'; streamId: string; retry: number; errorType: string }
    /** It lies in the DLQ topic, or instead of that in the quarantine topic. The id is empty for what is no stream. */
    | {
        type: 'dead-lettered' | 'quarantined'
        streamId: string
        errorType: string
        message: string
        topic: string
      }
    /** A dead record could not be written. It is tried again, and the record is not done until then. */
    | { type: 'publish-failed'; topic: string; error: unknown }
    | { type: 'error'; error: unknown }
  )

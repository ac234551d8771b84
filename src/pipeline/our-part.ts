import type { AssignedPartition, Buffered } from '../backends/kafka/group-consumer.ts'
import type { StoredRecord } from '../backends/kafka/record.ts'

/** A record that is not done. */
export interface Entry {
  readonly part: OurPart
  readonly record: StoredRecord
  readonly lane: string | undefined
  isRunning: boolean
  /** It failed, and is tried again. */
  isFailing: boolean
}

/** A partition that is ours, and what we have of it. */
export interface OurPart extends AssignedPartition, Buffered {
  readonly entries: Set<Entry>
  /** Not told to the broker as begun, in their order. */
  waiting: Entry[]
  running: number
  readonly gone: AbortController
  onIdle: () => void
}

export function begun(part: AssignedPartition): OurPart {
  return Object.assign(part, {
    entries: new Set<Entry>(),
    waiting: [],
    bytes: 0,
    running: 0,
    gone: new AbortController(),
    onIdle: () => {},
  })
}

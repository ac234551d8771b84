import type { AssignedPartition, Buffered } from '../backends/kafka/group-consumer.ts'
import type { StoredRecord } from '../backends/kafka/record.ts'

/** An unfinished record. */
export interface Entry {
  readonly part: OurPart
  readonly record: StoredRecord
  readonly lane: string | undefined
  isRunning: boolean
  /** The record failed, and is retried. */
  isFailing: boolean
}

/** A partition that is assigned to us, and its records. */
export interface OurPart extends AssignedPartition, Buffered {
  readonly entries: Set<Entry>
  /** Records that are not yet announced to the broker as started, in order. */
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

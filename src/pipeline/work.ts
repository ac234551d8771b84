import type { RedriveError } from '../errors.ts'
import type { OutgoingRecord } from '../backends/kafka/sender.ts'
import type { Entry } from './our-part.ts'

/** What comes of a record. */
export interface Work {
  /** All of it is sent before the record is done. */
  outgoing: readonly OutgoingRecord[]
  /** The brokers have it. */
  done?: () => void
  /** They did not take it. It is tried again by itself. */
  failed?: (error: unknown) => void
  /** What is sent if a topic takes nothing so large. Unless said, it is tried again like any other. */
  instead?: (error: RedriveError) => Promise<Work>
}

/** A record that was worked on, and is not done before the brokers have what came of it. */
export interface Finished {
  entry: Entry
  work: Work
}

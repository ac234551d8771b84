import type { Holds, Part } from '../backends/kafka/parts.ts'
import type { Stored } from '../backends/kafka/record.ts'

/** A record that is not done. */
export interface Entry {
  readonly part: OurPart
  readonly record: Stored
  readonly lane: string | undefined
  isRunning: boolean
  /** It failed, and is tried again. */
  isFailing: boolean
}

/** A partition that is ours, and what we have of it. */
export interface OurPart extends Part, Holds {
  readonly entries: Set<Entry>
  /** Not told to the broker as begun, in their order. */
  waiting: Entry[]
  running: number
  readonly gone: AbortController
  onIdle: () => void
}

export function begun(part: Part): OurPart {
  return Object.assign(part, {
    entries: new Set<Entry>(),
    waiting: [],
    bytes: 0,
    running: 0,
    gone: new AbortController(),
    onIdle: () => {},
  })
}

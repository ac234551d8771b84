import type { Clock } from '../clock/clock.ts'
import type { LoopCounts, LoopStatus } from '../letter/loop-status.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Emit, LoopEvent } from './events.ts'

/** The count that an event adds to. */
const countOfEvent: { [T in LoopEvent['type']]?: keyof LoopCounts } = {
  'message-done': 'processed',
  'message-failed': 'failed',
  'message-deferred': 'failed',
  'message-refused': 'failed',
  'dead-lettered': 'dead',
  'dead-letter-handled': 'processed',
  'dead-letter-failed': 'failed',
  'dead-letter-parked': 'dead',
}

/** What a loop has done since it was created. */
export class LoopActivity {
  readonly #clock: Clock
  readonly #counts: LoopCounts = { received: 0, processed: 0, failed: 0, dead: 0 }
  #lastMs: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns a function that counts events before it emits them. */
  count(emit: Emit): Emit {
    return (event) => {
      const name = countOfEvent[event.type]
      if (name !== undefined) this.#add(name)
      emit(event)
    }
  }

  /** Counts a received message. */
  addReceived(): void {
    this.#add('received')
  }

  status(): Pick<LoopStatus, 'counts' | 'lastActivityAt'> {
    const counts = { ...this.#counts }
    return this.#lastMs === undefined
      ? { counts }
      : { counts, lastActivityAt: toTimestamp(this.#lastMs) }
  }

  #add(name: keyof LoopCounts): void {
    this.#counts[name]++
    this.#lastMs = this.#clock.now()
  }
}

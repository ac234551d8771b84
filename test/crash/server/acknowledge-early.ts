import { Capturer, type Captured } from '../../../src/capture/capture.ts'
import { systemClock } from '../../../src/clock/clock.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { pause } from '../child.ts'

/*
 * A planted bug: the server acknowledges a capture before the store has answered. It is loaded into
 * the server before its own modules.
 */

const { capture } = Capturer.prototype as {
  capture: (this: Capturer, captured: Captured) => Promise<DeadLetter>
}

Capturer.prototype.capture = async function (captured: Captured): Promise<DeadLetter> {
  const id = captured.context.id ?? systemClock.id()
  const late = { ...captured, context: { ...captured.context, id } }
  void pause(5 + 35 * systemClock.random())
    .then(() => capture.call(this, late))
    .catch(() => {})
  return { id, queue: captured.queue, state: 'pending', occurrences: 1 } as DeadLetter
}

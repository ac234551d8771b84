import { expect, it, vi } from 'vitest'
import { ObserverHub, type RedriveEvent } from '../../src/observer.ts'
import { createEventRedactor } from '../../src/observers/redact-event.ts'
import { Redaction } from '../../src/policy/redaction/redaction.ts'
import { aLetter } from '../../src/testing/index.ts'

it('redacts a letter once for all events and observers, and again for another redaction', () => {
  const hub = new ObserverHub()
  let redaction = new Redaction({ patterns: ['mia'] })
  const redactors = { redaction: () => redaction, redactions: () => [redaction] }
  hub.setRedaction(createEventRedactor(redactors))
  const events: RedriveEvent[] = []
  for (let n = 0; n < 2; n++)
    hub.on(
      '*',
      Object.assign((event: RedriveEvent) => events.push(event), { leavesProcess: true }),
    )
  const redact = vi.spyOn(Redaction.prototype, 'payload')
  const letter = aLetter({ tags: ['mia', 'leo'] })
  hub.emit({ type: 'captured', letter })
  hub.emit({ type: 'stuck', letter, overdueMs: 1 })
  expect(redact).toHaveBeenCalledTimes(1)
  expect(events).toHaveLength(4)
  for (const event of events)
    expect(event).toMatchObject({ letter: { tags: ['[redacted]', 'leo'] } })
  redaction = new Redaction({ patterns: ['leo'] })
  hub.emit({ type: 'stuck', letter, overdueMs: 2 })
  expect(redact).toHaveBeenCalledTimes(2)
  expect(events.at(-1)).toMatchObject({ letter: { tags: ['mia', '[redacted]'] } })
  redact.mockRestore()
})

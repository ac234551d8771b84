import { describe, expect, it } from 'vitest'
import { toEventLine, type EventLine } from '../../../src/cli/demo/events.ts'
import { renderFrame } from '../../../src/cli/demo/frame.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { expectToFit, hostileText } from '../run-cli.ts'

async function aPicture(rows: number, events: number): Promise<string[]> {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  await store.open()
  const failure = {
    name: 'Error',
    message: hostileText.repeat(9),
    causes: [],
    at: '2026-01-01T00:00:00.000Z',
  }
  const queues = ['charge-card', 'refund', 'a'.repeat(90), '日本語'.repeat(9)]
  const letters = queues.map((queue) => aLetter({ queue, failure }))
  await store.add(letters)
  const lines = Array.from({ length: events }, (_, index) =>
    toEventLine({ type: 'captured', letter: letters[index % 4]! }, clock.now()),
  )
  return renderFrame({
    url: 'sqlite:demo.db',
    store,
    clock,
    startedMs: clock.now(),
    paused: false,
    rows,
    events: lines as EventLine[],
  })
}

describe('renderFrame', () => {
  it.each([
    [24, 0],
    [24, 3],
    [24, 100],
    [40, 100],
  ])('fills a terminal of %i rows and 80 columns with %i events', async (rows, events) => {
    const lines = await aPicture(rows, events)
    expect(lines).toHaveLength(rows - 1)
    expectToFit(lines.join('\n'))
    expect(lines.at(-1)).toContain('q or Ctrl-C stops')
    expect(lines.filter((line) => line.includes(' captured '))).toHaveLength(
      Math.min(events, rows - 15),
    )
  })

  it('omits events that do not fit', async () => {
    expect((await aPicture(10, 5)).filter((line) => line.includes(' captured '))).toEqual([])
  })
})

import { describe, expect, it } from 'vitest'
import { createProgressLine } from '../../src/cli/progress-line.ts'
import { fakeClock } from '../../src/testing/index.ts'

function aStream(isTTY: boolean) {
  const written: string[] = []
  const write = (text: string): boolean => written.push(text) > 0
  return { written, stream: { write: write as never, isTTY, columns: 12 } }
}

describe('createProgressLine', () => {
  it('overwrites one line of a terminal at most every 100 ms, and clears it', async () => {
    const { written, stream } = aStream(true)
    const clock = fakeClock()
    const line = createProgressLine(stream, clock)
    line.show('first', 0.1)
    line.show('too soon', 0.2)
    await clock.advance(100)
    line.show('a line that is too long', 0.3)
    line.close()
    line.close()
    expect(written).toEqual(['\r\u001b[Kfirst', '\r\u001b[Ka line tha…', '\r\u001b[K'])
  })

  it('writes one plain line per tenth of the progress without a terminal', () => {
    const { written, stream } = aStream(false)
    const line = createProgressLine(stream, fakeClock())
    for (const share of [0.01, 0.11, 0.12, 0.35, 1]) line.show(`${share}`, share)
    line.close()
    expect(written).toEqual(['0.11\n', '0.35\n', '1\n'])
  })
})

import { describe, expect, it } from 'vitest'
import { createProgressLine, formatProgress } from '../../src/cli/progress-line.ts'
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
    line.show({ label: 'read', done: 1 })
    line.show({ label: 'read', done: 2 })
    await clock.advance(100)
    line.show({ label: 'read', done: 1_000_000 })
    line.close()
    line.close()
    expect(written).toEqual(['\r\u001b[Kread  1', '\r\u001b[Kread  1,00…', '\r\u001b[K'])
  })

  it('writes nothing without a terminal', () => {
    const { written, stream } = aStream(false)
    const line = createProgressLine(stream, fakeClock())
    line.show({ label: 'copy', done: 1, total: 2 })
    line.close()
    expect(written).toEqual([])
  })
})

describe('formatProgress', () => {
  const first = { label: 'copy', done: 0, total: 1000 }

  it('has a bar, the numbers, the rate and the remaining time', () => {
    expect(formatProgress({ ...first, done: 250, note: '3 failed' }, first, 5000)).toBe(
      'copy █████░░░░░░░░░░░░░░░ 25 %  250 of 1,000  50/s  15 s left  3 failed',
    )
  })

  it('measures the rate since the operation was continued', () => {
    const continued = { ...first, done: 500 }
    expect(formatProgress({ ...first, done: 600 }, continued, 1000)).toBe(
      'copy ████████████░░░░░░░░ 60 %  600 of 1,000  100/s  4 s left',
    )
  })

  it('has no bar and no remaining time if the total is unknown', () => {
    const read = { label: 'read', done: 0 }
    expect(formatProgress({ ...read, done: 20 }, read, 2000)).toBe('read  20  10/s')
  })

  it('is complete if there is nothing to do', () => {
    const none = { label: 'copy', done: 0, total: 0 }
    expect(formatProgress(none, none, 0)).toBe('copy ████████████████████ 100 %  0 of 0')
  })
})

import type { WriteStream } from 'node:tty'
import { describe, expect, it } from 'vitest'
import { openScreen } from '../../src/cli/screen.ts'

function aTerminal(rows: number) {
  const written: string[] = []
  const stream = { rows, columns: 80, write: (text: string) => written.push(text) }
  return { written, stream, screen: openScreen(stream as unknown as WriteStream) }
}

describe('openScreen', () => {
  it('redraws in one write, without clearing, and only after a change', () => {
    const { written, screen, stream } = aTerminal(24)
    screen.draw(['one', 'two'])
    screen.draw(['one', 'two'])
    expect(written).toHaveLength(2)
    expect(written[1]).not.toContain('\u001b[2J')
    stream.columns = 60
    screen.draw(['one', 'two'])
    expect(written).toHaveLength(3)
    screen.close()
  })

  it('omits lines that do not fit instead of scrolling', () => {
    const { written, screen } = aTerminal(3)
    screen.draw(['one', 'two', 'three', 'four'])
    expect(written[1]).toContain('two')
    expect(written[1]).not.toContain('three')
    screen.close()
  })

  it('restores the terminal once, and draws nothing afterwards', () => {
    const { written, screen } = aTerminal(24)
    const listeners = process.listenerCount('exit')
    screen.close()
    screen.close()
    screen.draw(['late'])
    expect(written.join('')).toBe('\u001b[?1049h\u001b[?25l\u001b[?25h\u001b[?1049l')
    expect(process.listenerCount('exit')).toBe(listeners - 1)
  })
})

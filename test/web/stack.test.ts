import { describe, expect, it } from 'vitest'
import { parseStack } from '../../web/src/format/stack.ts'

describe('parseStack', () => {
  it('separates frames of the application from those of libraries', () => {
    const stack = `Error: a
second line
    at charge (file:///app/charge.js:1:2)
    at run (/app/node_modules/pkg/index.js:3:4)
    at process.processTicks (node:internal/process:5:6)
    at main (/app/main.js:7:8)`
    expect(
      parseStack(stack).map(({ isLibrary, frames }) => [isLibrary, frames.map((one) => one.text)]),
    ).toEqual([
      [false, ['at charge (file:///app/charge.js:1:2)']],
      [
        true,
        [
          'at run (/app/node_modules/pkg/index.js:3:4)',
          'at process.processTicks (node:internal/process:5:6)',
        ],
      ],
      [false, ['at main (/app/main.js:7:8)']],
    ])
  })

  it('has no frames if the text has none', () => {
    expect(parseStack('Error: only a message')).toEqual([])
    expect(parseStack('')).toEqual([])
  })

  it('limits a stack of 20,000 frames', () => {
    const stack = `Error: deep\n${'    at f (/app/a.js:1:2)\n'.repeat(20_000)}`
    expect(parseStack(stack)[0]?.frames.length).toBe(10_000)
  })
})

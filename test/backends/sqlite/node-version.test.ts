import { describe, expect, it } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { isSupportedNode, nodeRange } from '../../../src/backends/sqlite/node-version.ts'

describe('the supported versions of Node', () => {
  it('are those that package.json names', () => {
    expect(manifest.engines.node).toBe(nodeRange)
  })

  it.each([
    ['20.20.2', false],
    ['22.9.0', false],
    ['22.22.2', false],
    ['22.22.3', true],
    ['22.23.0', true],
    ['23.11.1', false],
    ['24.14.1', false],
    ['24.15.0', true],
    ['25.8.0', false],
    ['25.8.1', true],
    ['26.0.0', true],
    ['100.0.0-nightly', true],
  ])('%s: %s', (version, expected) => {
    expect(isSupportedNode(version)).toBe(expected)
  })
})

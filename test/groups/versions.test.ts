import { describe, expect, it } from 'vitest'
import { compareVersions } from '../../src/groups/versions.ts'

describe('compareVersions', () => {
  it('orders versions by semver precedence', () => {
    const ascending = [
      '0.9.9',
      '1.0.0-alpha',
      '1.0.0-alpha.1',
      '1.0.0-alpha.beta',
      '1.0.0-beta',
      '1.0.0-beta.2',
      '1.0.0-beta.11',
      '1.0.0-rc.1',
      '1.0.0',
      '1.0.1',
      '1.2.0',
      '1.10.0',
      '2.0.0-0',
      'v2.0.0',
      '10.0.0',
    ]
    for (const [n, a] of ascending.entries())
      for (const [m, b] of ascending.entries())
        expect(Math.sign(compareVersions(a, b)!), `${a} ${b}`).toBe(Math.sign(n - m))
  })

  it('ignores build metadata', () => {
    expect(compareVersions('1.0.0+a', '1.0.0+b')).toBe(0)
  })

  it.each(['', '1', '1.2', 'main', '2026-01-04', 'abc1234', '1.2.3.4', '1.2.x', '1.2.3-'])(
    'does not order %j',
    (text) => {
      expect(compareVersions(text, '1.0.0')).toBeUndefined()
      expect(compareVersions('1.0.0', text)).toBeUndefined()
    },
  )
})

import { expect, it } from 'vitest'
import { createSecret } from '../../src/clock/secret.ts'

it('creates another secret each time, of the given size', () => {
  const secrets = new Set(Array.from({ length: 100 }, () => createSecret(32)))
  expect(secrets.size).toBe(100)
  for (const secret of secrets) expect(secret).toMatch(/^[\w-]{43}$/)
})

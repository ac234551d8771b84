import { describe, expect, it } from 'vitest'
import { OneTimeCodes } from '../../../src/server/sign-in/one-time-codes.ts'
import { callerOf } from '../../../src/server/tokens.ts'
import { fakeClock } from '../../../src/testing/index.ts'

const admin = callerOf({ name: 'admin', role: 'admin' })
const tenMinutesMs = 600_000

describe('OneTimeCodes', () => {
  it('returns the caller of a code once', () => {
    const codes = new OneTimeCodes(fakeClock())
    const [one, other] = [codes.create(admin), codes.create({ ...admin, name: 'mia' })]
    expect(codes.use(other)?.name).toBe('mia')
    expect(codes.use(other)).toBeUndefined()
    expect(codes.use(one)).toBe(admin)
  })

  it('accepts a code for 10 minutes, and not longer', async () => {
    const clock = fakeClock()
    const codes = new OneTimeCodes(clock)
    const code = codes.create(admin)
    await clock.advance(tenMinutesMs - 1)
    const second = codes.create(admin)
    expect(codes.use(code)).toBe(admin)
    await clock.advance(tenMinutesMs)
    expect(codes.use(second)).toBeUndefined()
  })

  it('accepts nothing but its codes', () => {
    const codes = new OneTimeCodes(fakeClock())
    const code = codes.create(admin)
    for (const wrong of ['', code.slice(1), `${code}x`, code.toLowerCase(), 'x'.repeat(43)])
      expect(codes.use(wrong)).toBeUndefined()
    expect(new OneTimeCodes(fakeClock()).use(code)).toBeUndefined()
  })

  it('keeps the last 100 codes', () => {
    const codes = new OneTimeCodes(fakeClock())
    const created = Array.from({ length: 101 }, () => codes.create(admin))
    expect(codes.use(created[0]!)).toBeUndefined()
    expect(codes.use(created[1]!)).toBe(admin)
  })
})

import { afterEach, describe, expect, it, vi } from 'vitest'
import { sleep, systemClock, uuidMaker } from '../../src/clock/clock.ts'

const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe('uuidMaker', () => {
  const fill = (bytes: Uint8Array): void => void bytes.fill(0xff)

  it('creates ascending UUIDv7s, many per millisecond', () => {
    const make = uuidMaker(() => 1_700_000_000_000, fill)
    const ids = Array.from({ length: 10_000 }, make)
    expect(ids.every((id) => uuid7.test(id))).toBe(true)
    expect([...ids].sort()).toEqual(ids)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('keeps the order when the wall clock steps back', () => {
    let now = 1_700_000_000_000
    const make = uuidMaker(() => now, fill)
    const before = make()
    now -= 3_600_000
    const after = make()
    expect(after > before).toBe(true)
  })

  it('starts with the time', () => {
    expect(uuidMaker(() => 0x0123456789ab, fill)().slice(0, 13)).toBe('01234567-89ab')
  })
})

describe('systemClock', () => {
  afterEach(() => void vi.useRealTimers())

  it('supports delays longer than setTimeout does', () => {
    vi.useFakeTimers()
    const days = 30 * 86_400_000
    let fired = false
    systemClock.timer(days, () => void (fired = true))
    vi.advanceTimersByTime(days - 1)
    expect(fired).toBe(false)
    vi.advanceTimersByTime(1)
    expect(fired).toBe(true)
  })

  it('cancels a timer, also between its steps', () => {
    vi.useFakeTimers()
    let fired = false
    const cancel = systemClock.timer(2 ** 31 + 1000, () => void (fired = true))
    vi.advanceTimersByTime(2 ** 31)
    cancel()
    vi.advanceTimersByTime(10_000)
    expect(fired).toBe(false)
  })

  it('returns wall time, monotonic time, random numbers and ids', () => {
    expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(60_000)
    expect(systemClock.mono()).toBeGreaterThan(0)
    expect(systemClock.random()).toBeLessThan(1)
    expect(systemClock.id()).toMatch(uuid7)
  })
})

describe('sleep', () => {
  it('ends when the signal aborts or was aborted before', async () => {
    const controller = new AbortController()
    const slept = sleep(systemClock, 3_600_000, controller.signal)
    controller.abort()
    await expect(slept).resolves.toBeUndefined()
    await expect(sleep(systemClock, 3_600_000, controller.signal)).resolves.toBeUndefined()
  })
})

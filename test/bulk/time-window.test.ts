import { describe, expect, it } from 'vitest'
import { msUntilOpen } from '../../src/bulk/time-window.ts'

const minuteMs = 60_000
const at = (time: string): number => Date.parse(`2026-07-01T${time}.000Z`)

describe('a time window', () => {
  it.each([
    ['12:00:00', { from: '11:00', to: '13:00' }, 0],
    ['11:00:00', { from: '11:00', to: '13:00' }, 0],
    ['13:00:00', { from: '11:00', to: '13:00' }, 22 * 60 * minuteMs],
    ['10:59:30', { from: '11:00', to: '13:00' }, minuteMs / 2],
    ['23:00:00', { from: '22:00', to: '06:00' }, 0],
    ['05:59:59', { from: '22:00', to: '06:00' }, 0],
    ['06:00:00', { from: '22:00', to: '06:00' }, 16 * 60 * minuteMs],
    ['12:00:00', { from: '14:00', to: '15:00', timeZone: 'Europe/Berlin' }, 0],
    ['12:00:00', { from: '09:00', to: '10:00', timeZone: 'America/New_York' }, 60 * minuteMs],
  ])('at %s opens %j in %i ms', (time, window, ms) => {
    expect(msUntilOpen(window, at(time))).toBe(ms)
  })
})

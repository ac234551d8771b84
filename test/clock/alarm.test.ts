import { describe, expect, it } from 'vitest'
import { Alarm } from '../../src/clock/alarm.ts'
import { fakeClock } from '../../src/testing/index.ts'

describe('Alarm', () => {
  it('fires once at the earliest deadline', async () => {
    const clock = fakeClock()
    const startMs = clock.mono()
    const rung: number[] = []
    const alarm = new Alarm(clock, (nowMs) => void rung.push(nowMs - startMs))
    for (const afterMs of [300, 100, 200]) alarm.by(startMs + afterMs)
    await clock.advance(1000)
    expect(rung).toEqual([100])
  })

  it('fires again at the returned deadline and at a new one', async () => {
    const clock = fakeClock()
    const startMs = clock.mono()
    const rung: number[] = []
    const alarm = new Alarm(clock, (nowMs) => {
      rung.push(nowMs - startMs)
      return rung.length < 3 ? nowMs + 50 : undefined
    })
    alarm.by(startMs + 100)
    await clock.advance(500)
    expect(rung).toEqual([100, 150, 200])
    alarm.by(startMs + 700)
    await clock.advance(500)
    expect(rung).toEqual([100, 150, 200, 700])
  })

  it('does not fire after off()', async () => {
    const clock = fakeClock()
    const rung: number[] = []
    const alarm = new Alarm(clock, (nowMs) => void rung.push(nowMs))
    alarm.by(clock.mono() + 100)
    alarm.off()
    await clock.advance(1000)
    expect(rung).toEqual([])
  })
})

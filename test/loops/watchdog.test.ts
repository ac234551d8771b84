import { expect, it } from 'vitest'
import { Heartbeat } from '../../src/loops/heartbeat.ts'
import type { Runnable } from '../../src/loops/runnable.ts'
import { Watchdog } from '../../src/loops/watchdog.ts'
import { fakeClock, type FakeClock } from '../../src/testing/fake-clock.ts'

function aRunnable(clock: FakeClock, name: string, running = true): Runnable {
  return {
    name,
    running,
    heartbeat: new Heartbeat(clock),
    run: async () => {},
    shutdown: async () => true,
  }
}

it('reports each stalled loop once, until it beats again', async () => {
  const clock = fakeClock()
  const lively = aRunnable(clock, 'lively')
  const stuck = aRunnable(clock, 'stuck')
  const reported: string[] = []
  const watchdog = new Watchdog({
    loops: [lively, stuck],
    clock,
    thresholdMs: 90_000,
    stalled: ({ name }, ms) => reported.push(`${name} ${ms}`),
  })
  watchdog.start()
  watchdog.start()
  for (let turn = 0; turn < 10; turn++) {
    lively.heartbeat.beat()
    await clock.advance(30_000)
  }
  expect(reported).toEqual(['stuck 120000'])
  stuck.heartbeat.beat()
  for (let turn = 0; turn < 10; turn++) {
    lively.heartbeat.beat()
    await clock.advance(30_000)
  }
  expect(reported).toHaveLength(2)
  watchdog.stop()
  expect(clock.pending()).toBe(0)
})

it('ignores loops that do not run', async () => {
  const clock = fakeClock()
  let reported = 0
  const loops = [aRunnable(clock, 'ended', false)]
  new Watchdog({ loops, clock, thresholdMs: 1000, stalled: () => reported++ }).start()
  await clock.advance(60_000)
  expect(reported).toBe(0)
})

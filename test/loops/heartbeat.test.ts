import { expect, it } from 'vitest'
import { Heartbeat } from '../../src/loops/heartbeat.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

it('measures the time since the last beat, independent of the wall clock', async () => {
  const clock = fakeClock()
  const heartbeat = new Heartbeat(clock)
  await clock.advance(500)
  expect(heartbeat.elapsedMs()).toBe(500)
  clock.set(0)
  expect(heartbeat.elapsedMs()).toBe(500)
  heartbeat.beat()
  expect(heartbeat.elapsedMs()).toBe(0)
})

it('calls observers at every beat until they are removed', () => {
  const heartbeat = new Heartbeat(fakeClock())
  let beats = 0
  const stop = heartbeat.observe(() => beats++)
  heartbeat.beat()
  heartbeat.beat()
  stop()
  heartbeat.beat()
  expect(beats).toBe(2)
})

it('protects the beat and other observers from an observer that throws or rejects', async () => {
  const errors: unknown[] = []
  const heartbeat = new Heartbeat(fakeClock(), (error) => errors.push(error))
  let beats = 0
  heartbeat.observe(() => {
    throw new Error('one')
  })
  heartbeat.observe(async () => {
    throw new Error('two')
  })
  heartbeat.observe(() => beats++)
  heartbeat.beat()
  await Promise.resolve()
  expect(beats).toBe(1)
  expect(errors.map(String)).toEqual(['Error: one', 'Error: two'])
})

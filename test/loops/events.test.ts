import { expect, it } from 'vitest'
import { createEmit, type LoopEvent } from '../../src/loops/events.ts'

const depth: LoopEvent = { type: 'depth', mailbox: 'dlq', depth: 1 }

it('emits the same events to a listener and a hub', () => {
  const one: LoopEvent[] = []
  const two: LoopEvent[] = []
  const hub = { emit: (event: LoopEvent): void => void two.push(event) }
  createEmit({ onEvent: (event) => void one.push(event), hub })(depth)
  expect(one).toEqual([depth])
  expect(two).toEqual([depth])
})

it('reports an error of a listener once, and never throws it', async () => {
  const received: LoopEvent[] = []
  const hub = { emit: (event: LoopEvent): void => void received.push(event) }
  const emit = createEmit({
    hub,
    onEvent: () => {
      throw new Error('deaf')
    },
  })
  emit(depth)
  expect(received.map(({ type }) => type)).toEqual(['error', 'depth'])
  createEmit({ hub, onEvent: () => Promise.reject(new Error('deaf')) })(depth)
  await Promise.resolve()
  expect(received.map(({ type }) => type)).toEqual(['error', 'depth', 'depth', 'error'])
})

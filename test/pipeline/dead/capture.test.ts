import { describe, expect, it } from 'vitest'
import {
  pipelineCapture,
  pipelineLetterId,
  queueOf,
  type DeadStream,
} from '../../../src/pipeline/dead/capture.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { aCapturer } from '../../capture/a-capturer.ts'

const dead = (more: Partial<DeadStream> = {}): DeadStream => ({
  deadKey: 'key-1',
  source: {
    kind: 'pipeline',
    cluster: 'prod',
    node: 'parse',
    topic: 'in',
    partition: 1,
    offset: '7',
    streamId: 's1',
    hops: 2,
  },
  body: { bytes: Buffer.from('stream'), size: 6, contentType: 'application/x-protobuf' },
  errorType: 'TIMEOUT',
  message: 'it took too long',
  retries: 3,
  firstFailedAt: '2026-01-01T12:00:00.000Z',
  headers: { trace: 'abc' },
  quarantined: false,
  metadata: { dlqTopic: 'dlq.prod.parse', dlqPartition: 0, dlqOffset: 9 },
  ...more,
})

describe('pipelineCapture', () => {
  it('becomes a letter that waits for a person, once', async () => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    const capturer = aCapturer(store, clock)
    const letter = await capturer.capture(pipelineCapture(dead()))
    expect(letter).toMatchObject({
      id: pipelineLetterId('prod', 'key-1'),
      queue: 'parse',
      source: { kind: 'pipeline', streamId: 's1' },
      state: 'parked',
      reason: 'never',
      category: 'timeout',
      attempts: 4,
      failedAt: '2026-01-01T12:00:00.000Z',
      headers: { trace: 'abc' },
      metadata: { deadKey: 'key-1', dlqOffset: 9 },
    })
    await capturer.capture(pipelineCapture(dead()))
    expect((await store.tally('state')).get('parked')).toBe(1)
  })

  it('describes an invalid record', async () => {
    const clock = fakeClock()
    const capturer = aCapturer(memoryStore({ clock }), clock)
    const reasonOf = async (more: Partial<DeadStream>): Promise<unknown> => {
      const { reason } = await capturer.capture(
        pipelineCapture(dead({ deadKey: clock.id(), ...more })),
      )
      return reason
    }
    expect(await reasonOf({ errorType: 'MAX_HOPS' })).toBe('max-hops')
    expect(await reasonOf({ errorType: 'MALFORMED' })).toBe('malformed')
    expect(await reasonOf({ errorType: 'CRASH_LOOP' })).toBe('crash-loop')
    expect(await reasonOf({ quarantined: true })).toBe('replay-limit')
  })
})

describe('queueOf', () => {
  it('is the name of the node if it is a valid queue name', () => {
    expect(queueOf('parse')).toBe('parse')
    expect(queueOf('a\nb')).toMatch(/^node-[0-9a-f]{16}$/)
  })
})

import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { Caller, type CallResult } from '../../src/pipeline/caller.ts'
import { incoming } from '../../src/pipeline/incoming.ts'
import type { Module } from '../../src/pipeline/modules/module.ts'
import { nodeSettings, type NodeInput } from '../../src/pipeline/graph/settings.ts'
import { fakeClock, type FakeClock } from '../../src/testing/fake-clock.ts'
import { streamOf } from './pipeline-bench.ts'

interface Bench {
  clock: FakeClock
  /** When each call started. */
  atMs: number[]
  retries: string[]
  call: (signal?: AbortSignal, fetch?: () => Promise<undefined>) => Promise<CallResult>
}

function bench(module: Module, node: Partial<NodeInput> = {}): Bench {
  const clock = fakeClock()
  const startMs = clock.mono()
  const atMs: number[] = []
  const retries: string[] = []
  const caller = new Caller({
    clock,
    settings: nodeSettings({ cluster: 'c', node: 'n', ...node }),
    module: (call) => {
      atMs.push(clock.mono() - startMs)
      return module(call)
    },
    onRetry: (streamId, retry, { errorType }) => retries.push(`${streamId} ${retry} ${errorType}`),
  })
  const call: Bench['call'] = async (signal = new AbortController().signal, fetch) =>
    caller.call(incoming(streamOf('one', 'text'))!, signal, fetch)
  return { clock, atMs, retries, call }
}

const unavailable = (): never => {
  throw Object.assign(new Error('14 UNAVAILABLE: away'), { code: 14 })
}

describe('calls of a module', () => {
  it('wait n times the backoff before retry n, and give up after the last', async () => {
    const { clock, atMs, retries, call } = bench(unavailable)
    const called = call()
    await clock.advance(60_000)
    expect(await called).toMatchObject({
      kind: 'failed',
      retries: 3,
      error: { errorType: 'MODULE_UNAVAILABLE' },
    })
    expect(atMs).toEqual([0, 1000, 3000, 6000])
    expect(retries).toEqual([1, 2, 3].map((n) => `one ${n} MODULE_UNAVAILABLE`))
  })

  it('wait as long as the module asks for', async () => {
    const { clock, atMs, call } = bench(() => {
      throw Object.assign(new Error('slow down'), { status: 429, retryAfterMs: 5000 })
    })
    const called = call()
    await clock.advance(60_000)
    await called
    expect(atMs).toEqual([0, 5000, 10_000, 15_000])
  })

  it('end at their time limits, each and all together', async () => {
    const signals: AbortSignal[] = []
    const { clock, atMs, call } = bench(
      ({ signal }) => {
        signals.push(signal)
        return new Promise(() => {})
      },
      { timeoutMs: 10_000, deadlineMs: 25_000, dlq: { maxRetries: 9 } },
    )
    const called = call()
    await clock.advance(60_000)
    expect(await called).toMatchObject({ kind: 'failed', error: { errorType: 'TIMEOUT' } })
    expect(atMs).toEqual([0, 11_000, 23_000])
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true])
    expect(clock.mono()).toBeGreaterThan(25_000)
    expect(clock.pending()).toBe(0)
  })

  it('end when the partition is revoked', async () => {
    const leaving = new AbortController()
    const { clock, atMs, call } = bench(unavailable)
    const called = call(leaving.signal)
    await clock.advance(500)
    leaving.abort()
    await clock.advance(60_000)
    expect(await called).toMatchObject({ kind: 'failed' })
    expect(atMs).toEqual([0])
  })

  it('do not start if the time was over before the document arrived', async () => {
    const late = Promise.withResolvers<undefined>()
    const { clock, atMs, call } = bench(() => undefined, {
      timeoutMs: 1000,
      dlq: { maxRetries: 0 },
    })
    const called = call(undefined, () => late.promise)
    await clock.advance(2000)
    expect(await called).toMatchObject({ kind: 'failed', error: { errorType: 'TIMEOUT' } })
    late.resolve(undefined)
    await clock.advance(1)
    expect(atMs).toEqual([])
  })

  it.each<[string, Module]>([
    ['answers at once', () => undefined],
    ['throws at once', unavailable],
    ['answers later', async () => undefined],
  ])('leave nothing behind when the module uses its signal and %s', async (_, answer) => {
    const leaving = new AbortController()
    const signals: (() => AbortSignal)[] = []
    const module: Module = (call) => {
      signals.push(() => call.signal)
      call.signal.throwIfAborted()
      return answer(call)
    }
    const { call } = bench(module, { dlq: { maxRetries: 0 } })
    await call(leaving.signal)
    for (const readSignal of signals) readSignal()
    expect(getEventListeners(leaving.signal, 'abort')).toEqual([])
  })

  it('abort the signal of a module only at its time limit', async () => {
    let readSignal = (): AbortSignal | undefined => undefined
    const { clock, call } = bench(
      (call) => {
        readSignal = () => call.signal
        return new Promise(() => {})
      },
      { timeoutMs: 1000, dlq: { maxRetries: 0 } },
    )
    const called = call()
    await clock.advance(2000)
    await called
    expect(readSignal()!.aborted).toBe(true)
  })

  it('treat an invalid answer as a failure', async () => {
    const answer = { success: false, error: Object.create(null) as string } as const
    expect(await bench(() => answer).call()).toMatchObject({ kind: 'failed', retries: 0 })
  })

  it('abort the signal of a module when the partition is revoked', async () => {
    const leaving = new AbortController()
    const aborted = Promise.withResolvers<void>()
    const { call } = bench(
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted.resolve()
            reject(signal.reason as Error)
          })
        }),
    )
    const called = call(leaving.signal)
    leaving.abort(new Error('gone'))
    await aborted.promise
    expect(await called).toMatchObject({ kind: 'failed', retries: 0 })
  })

  it.each<[string, Module, CallResult]>([
    ['nothing', () => undefined, { kind: 'processed' }],
    ['success', async () => ({ success: true }), { kind: 'processed' }],
    [
      'that it cannot',
      () => ({ success: false, error: 'no PDF' }),
      { kind: 'refused', error: 'no PDF', retries: 0 },
    ],
  ])('accept %s as an answer', async (_, module, expected) => {
    expect(await bench(module).call()).toEqual(expected)
  })

  it('pass the document to the module, and accept another one from it', async () => {
    const { call } = bench(({ document, node, attempt, stream }) => {
      expect([node, attempt, stream.streamId]).toEqual(['n', 1, 'one'])
      return { success: true, document: { body: Buffer.from(document!.body.toReversed()) } }
    })
    const called = await call()
    expect(called).toMatchObject({ kind: 'processed' })
    const body = called.kind === 'processed' ? called.document!.body : []
    expect(Buffer.from(body).toString()).toBe('txet')
  })
})

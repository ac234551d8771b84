import { join } from 'node:path'
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  TracerProvider,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { memoryMailbox } from '../src/mailboxes/memory/memory.ts'
import { traceHeadersOf } from '../src/targets/trace.ts'
import { activeTrace, errorTypeOf, inSpan, startSpan, traceIdOf } from '../src/tracing.ts'
import { aLetter } from '../src/testing/index.ts'
import { aQueue, timedOut, type QueueBench } from './a-queue.ts'
import { runSync } from './processes.ts'
import { aServer, type TestServer } from './server/a-server.ts'

const given = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const exporter = new InMemorySpanExporter()
const tracer = (): ReturnType<typeof trace.getTracer> => trace.getTracer('application')

/** Registers an SDK, as an application does. */
function register(): void {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
  )
}

function unregister(): void {
  trace.disable()
  context.disable()
}

const spans = (): ReadableSpan[] => exporter.getFinishedSpans()
const spanOf = (name: string): ReadableSpan => {
  const found = spans().find((span) => span.name === name)
  if (!found)
    throw new Error(
      `no span ${name} in ${spans()
        .map((span) => span.name)
        .join(', ')}`,
    )
  return found
}
const traceparentOf = (span: ReadableSpan): string => {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return `00-${traceId}-${spanId}-0${traceFlags}`
}

const mail = { type: 'mail', payload: { to: 'a' } }

describe('without an SDK', () => {
  let bench: QueueBench
  beforeEach(async () => {
    bench = await aQueue()
  })
  afterEach(() => bench.dlq.close())

  it('describes no span, and has no active trace', () => {
    const describeSpan = (): never => {
      throw new Error('must not be called')
    }
    expect(startSpan(describeSpan)).toBeUndefined()
    expect(activeTrace()).toBeUndefined()
  })

  it('a letter keeps the traceparent that it was given', async () => {
    const { dlq } = bench
    const { id } = await dlq.enqueue(mail, new Error('x'), { traceparent: given })
    expect(await dlq.get(id)).toMatchObject({ traceparent: given })
    const plain = await dlq.enqueue(mail, new Error('x'))
    expect(plain).not.toHaveProperty('traceparent')
  })

  it('a replayed message carries the traceparent of its letter', async () => {
    const { dlq, clock } = bench
    const { id } = await dlq.enqueue(mail, new Error('x'), { traceparent: given })
    const to = memoryMailbox({ name: 'mail', clock })
    await dlq.replay(id, 'mia', { to })
    const [message] = await to.receive()
    expect(message!.headers['traceparent']).toBe(given)
  })
})

describe('without the package', () => {
  it('everything works', { timeout: 60_000 }, () => {
    const program = `
      import { registerHooks } from 'node:module'
      let asked = 0
      registerHooks({
        resolve(specifier, context, next) {
          if (!specifier.startsWith('@opentelemetry/')) return next(specifier, context)
          asked += 1
          throw Object.assign(new Error('Cannot find module'), { code: 'MODULE_NOT_FOUND' })
        },
      })
      const { DeadLetterQueue } = await import('./src/index.ts')
      const dlq = await DeadLetterQueue.open('memory:')
      const done = Promise.withResolvers()
      dlq.handle('mail', () => done.resolve())
      await dlq.enqueue({ type: 'mail', payload: 1 }, new Error('x'), { priority: 'critical' })
      dlq.start()
      await done.promise
      await dlq.close()
      console.log('asked', asked)
    `
    const root = join(import.meta.dirname, '..')
    const args = ['--input-type=module', '--eval', program]
    const output = runSync(process.execPath, args, { cwd: root })
    expect(output).toContain('asked 1')
  })
})

describe('with an SDK', () => {
  beforeAll(register)
  afterAll(unregister)
  afterEach(() => exporter.reset())

  describe('a letter', () => {
    let bench: QueueBench
    beforeEach(async () => {
      bench = await aQueue()
    })
    afterEach(() => bench.dlq.close())

    it('is captured in a producer span within the work that failed', async () => {
      const { dlq } = bench
      const letter = await tracer().startActiveSpan('charge', async (span) => {
        const captured = await dlq.enqueue(mail, new Error('x'))
        span.end()
        return captured
      })
      const capture = spanOf('capture mail')
      expect(capture.kind).toBe(SpanKind.PRODUCER)
      expect(capture.parentSpanContext?.spanId).toBe(spanOf('charge').spanContext().spanId)
      expect(capture.attributes).toEqual({
        'messaging.system.name': 'redrive',
        'messaging.operation.name': 'capture',
        'messaging.operation.type': 'send',
        'messaging.destination.name': 'mail',
        'messaging.message.id': letter.id,
        'messaging.message.body.size': letter.payload.size,
      })
      expect((await dlq.get(letter.id))?.traceparent).toBe(traceparentOf(capture))
    })

    it('is captured after the traceparent and tracestate of its message', async () => {
      const { dlq } = bench
      const headers = { tracestate: 'vendor=1' }
      const { id } = await dlq.enqueue(mail, new Error('x'), { traceparent: given, headers })
      const capture = spanOf('capture mail')
      expect(capture.spanContext().traceId).toBe(traceIdOf(given))
      expect(capture.parentSpanContext).toMatchObject({ spanId: given.slice(36, 52) })
      expect(await dlq.get(id)).toMatchObject({
        traceparent: traceparentOf(capture),
        headers: { tracestate: 'vendor=1' },
      })
    })

    it('begins a trace if its traceparent is invalid', async () => {
      const { dlq } = bench
      for (const traceparent of [
        'nonsense',
        `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
        `ff${given.slice(2)}`,
      ])
        await dlq.enqueue(mail, new Error('x'), { traceparent })
      expect(spans().map(({ parentSpanContext }) => parentSpanContext)).toEqual([
        undefined,
        undefined,
        undefined,
      ])
    })

    it('has a failed span when it cannot be stored, without the message of the error', async () => {
      const full = await aQueue({ maxItems: 1 })
      await full.dlq.enqueue(mail, new Error('x'))
      exporter.reset()
      await expect(full.dlq.enqueue(mail, new Error('x'))).rejects.toMatchObject({})
      await full.dlq.close()
      const { status, attributes, events } = spanOf('capture mail')
      expect(status).toEqual({ code: SpanStatusCode.ERROR })
      expect(attributes['error.type']).toBe('QUEUE_FULL')
      expect(events).toEqual([])
    })

    it('of a batch has the span of the batch, unless it has a trace of its own', async () => {
      const { dlq } = bench
      const error = new Error('x')
      const [first, second] = await dlq.enqueueAll([
        { operation: mail, error },
        { operation: mail, error, context: { traceparent: given } },
      ])
      const batch = spanOf('capture mail')
      expect(batch.attributes['messaging.batch.message_count']).toBe(2)
      expect((await dlq.get(first!))?.traceparent).toBe(traceparentOf(batch))
      expect((await dlq.get(second!))?.traceparent).toBe(given)
    })

    it('of enqueueEach has the span of the write, which fails with one of its letters', async () => {
      const full = await aQueue({ maxItems: 1, overflow: 'reject' })
      const error = new Error('x')
      const [first, second] = await full.dlq.enqueueEach([
        { operation: mail, error },
        { operation: mail, error },
      ])
      await full.dlq.close()
      const write = spanOf('capture mail')
      expect(first).toMatchObject({ value: { traceparent: traceparentOf(write) } })
      expect(second).toMatchObject({ status: 'rejected', reason: { code: 'QUEUE_FULL' } })
      expect(write.attributes).toMatchObject({
        'messaging.batch.message_count': 2,
        'error.type': 'QUEUE_FULL',
      })
    })

    it('runs in traces of its own that are linked to the capture', async () => {
      const { dlq, clock } = bench
      const active: (string | undefined)[] = []
      let runs = 0
      dlq.handle('mail', async () => {
        runs += 1
        active.push(activeTrace()?.traceparent)
        await tracer().startActiveSpan('send', async (span) => span.end())
        if (runs === 1) throw timedOut()
      })
      dlq.start()
      const { id } = await tracer().startActiveSpan('charge', async (span) => {
        const captured = await dlq.enqueue(mail, timedOut())
        span.end()
        return captured
      })
      await clock.advance(3_600_000)
      const [failed, resolved, ...others] = spans().filter(({ name }) => name === 'process mail')
      expect(others).toEqual([])
      const capture = spanOf('capture mail').spanContext()
      for (const run of [failed!, resolved!]) {
        expect(run.kind).toBe(SpanKind.CONSUMER)
        expect(run.parentSpanContext).toBeUndefined()
        expect(run.links).toEqual([
          expect.objectContaining({
            context: expect.objectContaining({ traceId: capture.traceId, spanId: capture.spanId }),
          }),
        ])
        expect(run.attributes).toMatchObject({
          'messaging.operation.type': 'process',
          'messaging.destination.name': 'mail',
          'messaging.message.id': id,
        })
      }
      expect(active).toEqual([traceparentOf(failed!), traceparentOf(resolved!)])
      expect(failed!.status.code).toBe(SpanStatusCode.ERROR)
      expect(resolved!.status.code).toBe(SpanStatusCode.UNSET)
      expect([failed!, resolved!].map(({ attributes }) => attributes['redrive.retry'])).toEqual([
        1, 2,
      ])
      const sends = spans().filter(({ name }) => name === 'send')
      expect(sends.map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual(
        [failed!, resolved!].map((run) => run.spanContext().spanId),
      )
    })

    it('is replayed in a producer span, which its message carries', async () => {
      const { dlq, clock } = bench
      const headers = { traceparent: given, other: 'kept' }
      const { id } = await dlq.enqueue(mail, new Error('x'), { traceparent: given, headers })
      const to = memoryMailbox({ name: 'outgoing', clock })
      await tracer().startActiveSpan('click', async (span) => {
        await dlq.replay(id, 'mia', { to })
        span.end()
      })
      const replay = spanOf('replay outgoing')
      expect(replay.kind).toBe(SpanKind.PRODUCER)
      expect(replay.parentSpanContext?.spanId).toBe(spanOf('click').spanContext().spanId)
      expect(replay.links.map((link) => link.context.spanId)).toEqual([
        spanOf('capture mail').spanContext().spanId,
      ])
      const [message] = await to.receive()
      expect(message!.headers).toMatchObject({ traceparent: traceparentOf(replay), other: 'kept' })
      // The headers of the letter stay as they were captured.
      expect(await dlq.get(id)).toMatchObject({ headers })
    })

    it('of a bulk action is replayed within the span of its step', async () => {
      await bench.dlq.close()
      bench = await aQueue({ mailboxes: { outgoing: memoryMailbox({ name: 'outgoing' }) } })
      const { dlq } = bench
      await dlq.enqueue(mail, new Error('x'))
      const { id } = await dlq.plan('replay', { queue: 'mail' }, { by: 'mia', to: 'outgoing' })
      dlq.start()
      await dlq.run(id)
      await bench.clock.advance(60_000)
      expect((await dlq.bulkAction(id)).progress).toMatchObject({ succeeded: 1 })
      const step = spanOf('bulk replay')
      expect(step.attributes).toMatchObject({ 'redrive.bulk.id': id, 'redrive.items': 1 })
      expect(spanOf('replay outgoing').parentSpanContext?.spanId).toBe(step.spanContext().spanId)
    })
  })

  describe('a store with measured calls', () => {
    it('has client spans within a span, and none for the polls of a worker', async () => {
      const { dlq, clock } = await aQueue({ onStoreCall: () => {} })
      dlq.handle('mail', () => {})
      dlq.start()
      await clock.advance(10_000)
      expect(spans()).toEqual([])
      await dlq.enqueue(mail, new Error('x'))
      const add = spanOf('add memory')
      expect(add.kind).toBe(SpanKind.CLIENT)
      expect(add.parentSpanContext?.spanId).toBe(spanOf('capture mail').spanContext().spanId)
      expect(add.attributes).toEqual({
        'db.system.name': 'memory',
        'db.operation.name': 'add',
        'redrive.items': 1,
      })
      await dlq.close()
    })
  })

  describe('a request', () => {
    let server: TestServer
    beforeEach(async () => {
      server = await aServer()
    })
    afterEach(() => server.close())

    const call = async (
      path: string,
      { headers = {}, ...init }: { method?: string; body?: string; headers?: object } = {},
    ): Promise<Response> => {
      const authorization = `Bearer ${await server.token()}`
      return fetch(`${server.url}${path}`, { ...init, headers: { authorization, ...headers } })
    }

    it('continues the trace of its traceparent, and joins the capture that it makes', async () => {
      const response = await call('/api/capture', {
        method: 'POST',
        headers: { traceparent: given, 'content-type': 'application/json' },
        body: JSON.stringify({ queue: 'mail', json: 1, error: { message: 'secret' } }),
      })
      expect(response.status).toBe(201)
      await expect.poll(() => spans().map(({ name }) => name)).toContain('POST /api/capture')
      const request = spanOf('POST /api/capture')
      expect(request.kind).toBe(SpanKind.SERVER)
      expect(request.spanContext().traceId).toBe(traceIdOf(given))
      expect(request.parentSpanContext?.spanId).toBe(given.slice(36, 52))
      expect(request.attributes).toMatchObject({
        'http.request.method': 'POST',
        'http.route': '/api/capture',
        'http.response.status_code': 201,
      })
      const capture = spanOf('capture mail')
      expect(capture.parentSpanContext?.spanId).toBe(request.spanContext().spanId)
      expect(JSON.stringify(spans().map(({ attributes }) => attributes))).not.toContain('secret')
    })

    it('is named by its route and not by its path', async () => {
      await call('/api/letters/0198c0de-0000-7000-8000-000000000000?x=secret')
      await call('/secret')
      await expect.poll(() => spans().length).toBe(2)
      expect(spans().map(({ name }) => name)).toEqual(['GET /api/letters/{id}', 'GET'])
    })
  })

  it('a span ends when its work throws, and the error stays the same', async () => {
    const error = Object.assign(new Error('x'), { code: 'E1' })
    const work = inSpan(
      () => ({ name: 'work', kind: 'internal', attributes: {} }),
      () => Promise.reject(error),
    )
    await expect(work).rejects.toBe(error)
    expect(spanOf('work').attributes).toEqual({ 'error.type': 'E1' })
  })

  it('a target sends the position of the run, and not that of the capture', () => {
    const letter = aLetter({ traceparent: given })
    expect(traceHeadersOf(letter)).toEqual({ traceparent: given })
    tracer().startActiveSpan('run', (span) => {
      expect(traceHeadersOf(letter).traceparent).toContain(span.spanContext().spanId)
      span.end()
    })
  })
})

it('an error is named by its code, or by its name', () => {
  expect(errorTypeOf(Object.assign(new Error('x'), { code: 'E1' }))).toBe('E1')
  expect(errorTypeOf(new TypeError('x'))).toBe('TypeError')
  expect([errorTypeOf(undefined), errorTypeOf('x')]).toEqual(['undefined', 'string'])
})

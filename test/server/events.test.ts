import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { describe, expect, it, vi } from 'vitest'
import { createClient, ProblemError, type CallOptions } from '../../src/api/client.ts'
import type { InputOf } from '../../src/api/endpoints.ts'
import { EventParser, type ParsedEvent } from '../../src/api/event-parser.ts'
import { feedEvent, type FeedEvent } from '../../src/api/schemas/feed.ts'
import type { NewToken } from '../../src/server/tokens.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import { spawn } from '../processes.ts'
import { withServerInEachTest, type TestServer } from './a-server.ts'
import { waitFor } from '../wait-for.ts'

let server: TestServer
withServerInEachTest((started) => (server = started), {
  alerts: [{ name: 'many-parked', when: { metric: 'parked', above: 0 }, severity: 'warning' }],
  alertEveryMs: 1000,
})

interface Watched {
  events: FeedEvent[]
  ids: string[]
  isEnded: boolean
  end: () => Promise<void>
  /** Waits, in virtual time, until the events have this. */
  until: (isThere: (events: FeedEvent[]) => boolean) => Promise<void>
}

const hasType =
  (type: FeedEvent['type']) =>
  (events: FeedEvent[]): boolean =>
    events.some((event) => event.type === type)

/** Reads a stream as a browser does, without connecting again. Waits until it is ready. */
async function watch(
  options: {
    token?: Partial<NewToken>
    secret?: string
    lastEventId?: string
    query?: string
    isReady?: boolean
  } = {},
): Promise<Watched> {
  const { lastEventId, query = '' } = options
  const secret = options.secret ?? (await server.token(options.token))
  const response = await fetch(`${server.url}/api/events${query}`, {
    headers: {
      authorization: `Bearer ${secret}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
  })
  expect(response.status, response.ok ? '' : await response.text()).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const watched: Watched = {
    events: [],
    ids: [],
    isEnded: false,
    end: async () => {
      await reader.cancel()
      await reading
    },
    until: (isThere) =>
      waitFor(
        async () => {
          await server.clock.advance(100)
          expect(isThere(watched.events), JSON.stringify(watched.events)).toBe(true)
        },
        { timeout: 20_000, interval: 10 },
      ),
  }
  const reader = response.body!.getReader()
  const parser = new EventParser()
  const decoder = new TextDecoder()
  const add = ({ id, data }: ParsedEvent): void => {
    // Every event must match the strict schema.
    watched.events.push(feedEvent.parse(JSON.parse(data)))
    if (id !== undefined) watched.ids.push(id)
  }
  const reading = (async () => {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) break
      for (const event of parser.push(decoder.decode(value, { stream: true }))) add(event)
    }
    watched.isEnded = true
  })()
  reading.catch(() => (watched.isEnded = true))
  await watched.until(hasType('ready'))
  return watched
}

const idsOf = (events: readonly FeedEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'letters' ? event.items.map(({ id }) => id) : []))

const enqueue = (queue = 'orders', tenant?: string): Promise<{ id: string }> =>
  server.dlq.enqueue({ type: queue, payload: { card: '4111' } }, new Error('refused 4111'), {
    metadata: { card: '4111' },
    ...(tenant === undefined ? {} : { tenant }),
  })

/** Waits until the stream has ended. */
const untilEnded = (watched: Watched): Promise<void> => watched.until(() => watched.isEnded)

describe('GET /api/events', () => {
  it('sends the current counts first, then new letters and changed counts', async () => {
    await enqueue('before')
    const watched = await watch()
    expect(watched.events).toEqual([
      { type: 'counts', states: { pending: 1 }, queues: { before: { pending: 1 } } },
      { type: 'ready' },
    ])
    const { id } = await enqueue('orders')
    await watched.until((events) => idsOf(events).includes(id))
    expect(idsOf(watched.events)).toEqual([id])
    expect(watched.ids.at(-1)).toBe(id)
    await watched.until((events) => events.at(-1)?.type === 'counts')
    expect(watched.events.at(-1)).toEqual({
      type: 'counts',
      states: { pending: 2 },
      queues: { orders: { pending: 1 } },
    })
    await server.dlq.park(id)
    await watched.until((events) =>
      events.some((event) => event.type === 'counts' && event.queues['orders']?.parked === 1),
    )
    await watched.end()
  })

  it('sends letters that become visible after newer ones', async () => {
    const watched = await watch()
    const late = aLetter({ id: server.clock.id(), queue: 'orders' })
    await server.clock.advance(20_000)
    const { id } = await enqueue()
    await watched.until((events) => idsOf(events).includes(id))
    await server.store.add([late])
    await watched.until((events) => idsOf(events).includes(late.id))
    await server.clock.advance(40_000)
    expect(idsOf(watched.events)).toEqual([id, late.id])
    await watched.end()
  })

  it('sends the newest letters and the number of the others when many come at once', async () => {
    const watched = await watch()
    const failure = { operation: { type: 'orders' }, error: new Error('x') }
    const ids = await server.dlq.enqueueAll(Array.from({ length: 130 }, () => failure))
    await watched.until(hasType('letters'))
    const event = watched.events.find(({ type }) => type === 'letters')
    expect(event).toMatchObject({ more: 30 })
    expect(idsOf(watched.events)).toEqual(ids.slice(-100))
    await watched.end()
  })

  it('sends progress and the end of bulk actions, and raised and cleared alerts', async () => {
    const { id } = await enqueue()
    server.dlq.start()
    const plan = await server.dlq.plan('park', { ids: [id] }, { by: 'mia' })
    await server.dlq.run(plan.id)
    const watched = await watch()
    const actionsOf = (events: FeedEvent[]): string[] =>
      events.flatMap((event) => (event.type === 'bulk-action' ? [event.action.state] : []))
    const alertsOf = (events: FeedEvent[]): string[] =>
      events.flatMap((event) => (event.type === 'alert' ? [event.state] : []))
    await watched.until((events) => actionsOf(events).at(-1) === 'finished')
    await watched.until((events) => alertsOf(events).includes('raised'))
    await server.dlq.resolve(id)
    await watched.until((events) => alertsOf(events).at(-1) === 'cleared')
    expect(alertsOf(watched.events)).toEqual(['raised', 'cleared'])
    await watched.end()
  })

  it('sends new groups, and what people and letters change in them', async () => {
    await enqueue('old')
    await server.clock.advance(10_000)
    const watched = await watch()
    const mails = await watch({ token: { queues: ['mails'] } })
    const tenant = await watch({ token: { tenants: ['acme'] } })
    const changesOf = (events: FeedEvent[]): string[] =>
      events.flatMap((event) =>
        event.type === 'group' ? [`${event.group.queue} ${event.change} by ${event.by}`] : [],
      )
    const { fingerprint } = await server.dlq.enqueue({ type: 'orders' }, new Error('refused 4111'))
    await watched.until((events) => changesOf(events).length === 1)
    await server.dlq.assignGroup(fingerprint, 'mia', 'bob')
    await watched.until((events) => changesOf(events).length === 2)
    await server.dlq.resolveGroup(fingerprint, 'mia')
    await watched.until((events) => changesOf(events).length === 3)
    await server.dlq.enqueue({ type: 'orders' }, new Error('refused 4111'))
    await enqueue('mails')
    await watched.until((events) => changesOf(events).length === 5)
    expect(changesOf(watched.events).toSorted()).toEqual([
      'mails new by undefined',
      'orders assign by mia',
      'orders new by undefined',
      'orders regress by letters',
      'orders resolve by mia',
    ])
    const group = { fingerprint, status: 'open', assignee: 'bob', count: 1, queue: 'orders' }
    expect(watched.events).toContainEqual(
      expect.objectContaining({
        type: 'group',
        change: 'assign',
        group: expect.objectContaining(group) as unknown,
      }),
    )
    await mails.until((events) => changesOf(events).length === 1)
    expect(changesOf(mails.events)).toEqual(['mails new by undefined'])
    expect(changesOf(tenant.events)).toEqual([])
    for (const one of [watched, mails, tenant]) await one.end()
  })

  it('sends no title of a group to callers that may not read content', async () => {
    const watched = await watch({ token: { permissions: ['letter:read'] } })
    await enqueue()
    await watched.until(hasType('group'))
    expect(JSON.stringify(watched.events)).not.toContain('4111')
    await watched.end()
  })

  it('sends only what is in the scope of the caller', async () => {
    const orders = await watch({ token: { queues: ['orders'] } })
    const acme = await watch({ token: { tenants: ['acme'] } })
    const both = await watch({ query: '?queue=orders&queue=mails' })
    await enqueue('mails')
    const { id: plain } = await enqueue('orders')
    const { id: ofAcme } = await enqueue('orders', 'acme')
    await orders.until((events) => idsOf(events).includes(ofAcme))
    await acme.until((events) => idsOf(events).includes(ofAcme))
    await both.until((events) => idsOf(events).length === 3)
    expect(idsOf(orders.events)).toEqual([plain, ofAcme])
    expect(JSON.stringify(orders.events)).not.toContain('mails')
    expect(acme.events.map(({ type }) => type)).toEqual(['ready', 'letters'])
    for (const watched of [orders, acme, both]) await watched.end()
  })

  it('demands one of the tenants of a caller that has several', async () => {
    const client = await server.client({ tenants: ['acme', 'globex'] })
    await expect(client.watchEvents().next()).rejects.toMatchObject({ problem: { status: 403 } })
  })

  it('sends nothing of the content of letters to callers that may not read it', async () => {
    const { id } = await enqueue()
    const filter = { ids: [id], text: '4111' }
    const plan = await server.dlq.plan('retry', filter, { by: 'mia', reason: 'about 4111' })
    await server.dlq.run(plan.id)
    const watched = await watch({ token: { permissions: ['letter:read'] }, query: '?after=0' })
    await enqueue()
    await watched.until((events) => idsOf(events).length === 2)
    await watched.until(hasType('bulk-action'))
    expect(JSON.stringify(watched.events)).not.toContain('4111')
    await watched.end()
  })

  it('ends the stream of a token that was revoked or has expired', async () => {
    const { token, info } = await server.tokens.create({
      name: 'a',
      createdBy: 'b',
      role: 'viewer',
    })
    const revoked = await watch({ secret: token })
    const expiresAt = new Date(server.clock.now() + 20_000).toISOString()
    const expired = await watch({ token: { expiresAt } })
    await server.tokens.revoke(info.id)
    await untilEnded(revoked)
    await untilEnded(expired)
    const other = await watch()
    await server.clock.advance(10_000)
    expect(other.isEnded).toBe(false)
    await other.end()
  })

  it('sends a heartbeat when nothing happens', async () => {
    const token = await server.token()
    const response = await fetch(`${server.url}/api/events`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const reader = response.body!.getReader()
    let text = ''
    const reading = (async () => {
      while (!text.includes(': heartbeat'))
        text += new TextDecoder().decode((await reader.read()).value)
    })()
    await waitFor(async () => {
      await server.clock.advance(1000)
      expect(text).toContain(': heartbeat')
    })
    await reading
    await reader.cancel()
  })
})

describe('Last-Event-ID', () => {
  it('brings the letters of the meantime, and those that may have become visible late', async () => {
    const first = await watch()
    const { id: seen } = await enqueue()
    await first.until((events) => idsOf(events).includes(seen))
    await first.end()
    const { id: missed } = await enqueue()
    await server.clock.advance(60_000)
    const again = await watch({ lastEventId: first.ids.at(-1)! })
    expect(idsOf(again.events)).toEqual([seen, missed])
    const later = await watch({ lastEventId: again.ids.at(-1)! })
    expect(idsOf(later.events)).toEqual([seen, missed])
    const inQuery = await watch({ query: `?after=${missed}` })
    expect(idsOf(inQuery.events)).toEqual([seen, missed])
    for (const watched of [again, later, inQuery]) await watched.end()
  })

  it('sends reset when more letters came than it sends', async () => {
    const failure = { operation: { type: 'orders' }, error: new Error('x') }
    await server.dlq.enqueueAll(Array.from({ length: 1001 }, () => failure))
    const watched = await watch({ lastEventId: '0' })
    expect(watched.events[0]).toMatchObject({ type: 'reset' })
    expect(idsOf(watched.events)).toEqual([])
    await watched.end()
  })

  it.each([
    ['a word', 'x'],
    ['an empty string', ''],
    ['a number', '-1'],
    ['many digits', '0'.repeat(36)],
    ['another alphabet', 'é'],
    ['a null byte', '%00'],
    ['SQL', "' or 1=1"],
    ['a long string', 'x'.repeat(5000)],
  ])('sends reset for %s', async (_, lastEventId) => {
    const watched = await watch({ lastEventId: encodeURIComponent(lastEventId) })
    expect(watched.events[0]).toMatchObject({ type: 'reset' })
    const { id } = await enqueue()
    await watched.until((events) => idsOf(events).includes(id))
    await watched.end()
  })

  it.each(['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'])(
    'takes the unknown id %s as a position',
    async (lastEventId) => {
      const watched = await watch({ lastEventId })
      const { id } = await enqueue()
      await watched.until((events) => idsOf(events).includes(id))
      expect(watched.ids.at(-1)).toBe(id)
      await watched.end()
    },
  )
})

/** The number of timers without a client. The server takes samples from its start. */
async function idleTimers(): Promise<number> {
  await waitFor(() => expect(server.clock.pending()).toBeGreaterThan(0))
  return server.clock.pending()
}

describe('a stream', () => {
  it('stays open while the store is unreachable, and misses no letter', async () => {
    const watched = await watch()
    const find = vi.spyOn(server.store, 'find').mockRejectedValue(new Error('down'))
    const tally = vi.spyOn(server.store, 'tally').mockRejectedValue(new Error('down'))
    const { id } = await enqueue()
    await server.clock.advance(120_000)
    expect(server.errors.splice(0)).toHaveLength(1)
    const { id: last } = await enqueue()
    find.mockRestore()
    tally.mockRestore()
    await watched.until((events) => idsOf(events).includes(last))
    expect(idsOf(watched.events)).toEqual([id, last])
    await watched.end()
  })

  it('ends for a client that does not read', async () => {
    const token = await server.token()
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    const closed = vi.fn<() => void>()
    socket.once('close', closed).on('error', () => {})
    socket.write(`GET /api/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`)
    socket.pause()
    const message = 'x'.repeat(100_000)
    const connections = (): Promise<number> =>
      new Promise((resolve, reject) =>
        server.app.server.getConnections((error, count) =>
          error ? reject(error) : resolve(count),
        ),
      )
    await waitFor(async () => expect(await connections()).toBe(1))
    // The system holds some megabytes for the client, and the server 2.
    for (let sent = 0; sent < 400 && (await connections()) > 0; sent++) {
      const context = { metadata: { message } }
      await server.dlq.enqueue({ type: 'orders' }, new Error('x'), context)
      await server.clock.advance(200)
    }
    expect(await connections()).toBe(0)
    socket.resume()
    await waitFor(() => expect(closed).toHaveBeenCalled(), { timeout: 20_000 })
  })

  it('ends when the server closes', async () => {
    const watched = await watch()
    await server.app.close()
    await waitFor(() => expect(watched.isEnded).toBe(true))
  })

  it('is refused when there are too many filters', async () => {
    const token = await server.token()
    const open = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        fetch(`${server.url}/api/events?queue=${index}`, {
          headers: { authorization: `Bearer ${token}` },
        }),
      ),
    )
    expect(open.every(({ status }) => status === 200)).toBe(true)
    const refused = await fetch(`${server.url}/api/events?queue=other`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ code: 'TOO_MANY_REQUESTS', retry: true })
    for (const { body } of open) await body!.cancel()
    await waitFor(async () => {
      const again = await fetch(`${server.url}/api/events?queue=other`, {
        headers: { authorization: `Bearer ${token}` },
      })
      expect(again.status).toBe(200)
      await again.body!.cancel()
    })
  })

  it('costs nothing after the last client has gone', async () => {
    const timers = await idleTimers()
    const watched = await watch()
    await watched.end()
    const find = vi.spyOn(server.store, 'find')
    await waitFor(() => expect(server.clock.pending()).toBe(timers))
    await enqueue()
    await server.clock.advance(10_000)
    expect(find).not.toHaveBeenCalled()
  })
})

describe('EventSource', () => {
  // While it waits to connect again, it does not keep the process alive.
  const program = `
    setInterval(() => {}, 1000)
    const source = new EventSource(process.argv[1])
    for (const type of ['letters', 'ready'])
      source.addEventListener(type, ({ data }) => console.log(data))`

  it('gets events, and continues after a lost connection', async () => {
    const token = await server.token()
    const lastIds: unknown[] = []
    // EventSource cannot send a token, so that a proxy has to add it.
    const proxy = createServer((request, response) => {
      lastIds.push(request.headers['last-event-id'])
      const headers = { ...request.headers, authorization: `Bearer ${token}` }
      const sent = httpRequest(`${server.url}${request.url}`, { headers }, (received) => {
        response.writeHead(received.statusCode!, received.headers)
        received.on('data', (chunk) => response.write(chunk))
        received.on('error', () => {}).once('close', () => response.end())
      })
      sent.on('error', () => response.end())
      sent.end()
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const { port } = proxy.address() as AddressInfo
    const url = `http://127.0.0.1:${port}/api/events`
    const child = spawn(process.execPath, ['--experimental-eventsource', '-e', program, url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      const events: FeedEvent[] = []
      createInterface({ input: child.stdout }).on('line', (line) =>
        events.push(feedEvent.parse(JSON.parse(line))),
      )
      const has = (isThere: () => boolean): Promise<void> =>
        waitFor(
          async () => {
            await server.clock.advance(100)
            expect(isThere()).toBe(true)
          },
          { timeout: 50_000 },
        )
      await has(() => hasType('ready')(events))
      const { id } = await enqueue()
      await has(() => idsOf(events).includes(id))
      server.app.server.closeAllConnections()
      const { id: missed } = await enqueue()
      await has(() => idsOf(events).includes(missed))
      expect(lastIds.slice(0, 2)).toEqual([undefined, id])
    } finally {
      child.kill('SIGKILL')
      proxy.closeAllConnections()
      proxy.close()
    }
  })
})

describe('the client', () => {
  const read = async (
    input: InputOf<'watchEvents'>,
    options: CallOptions,
    onEvent: (event: FeedEvent) => unknown,
    token?: string,
  ): Promise<void> => {
    const client = createClient({ url: server.url, token: token ?? (await server.token()) })
    for await (const event of client.watchEvents(input, options)) await onEvent(event)
  }

  it('connects again when the connection is lost, and gives each letter once', async () => {
    const ending = new AbortController()
    const events: FeedEvent[] = []
    const reading = read({}, { signal: ending.signal }, (event) => events.push(event))
    const has = (id: string): Promise<void> =>
      waitFor(
        async () => {
          await server.clock.advance(100)
          expect(idsOf(events)).toContain(id)
        },
        { timeout: 30_000 },
      )
    await waitFor(() => expect(hasType('ready')(events)).toBe(true))
    const { id: first } = await enqueue()
    await has(first)
    server.app.server.closeAllConnections()
    const { id: second } = await enqueue()
    await has(second)
    expect(idsOf(events)).toEqual([first, second])
    ending.abort()
    await reading
  })

  it('rejects when the token is revoked', async () => {
    const { token, info } = await server.tokens.create({
      name: 'a',
      createdBy: 'b',
      role: 'viewer',
    })
    const events: FeedEvent[] = []
    const reading = read({}, {}, (event) => events.push(event), token)
    const failed = reading.catch((error: unknown) => error)
    await waitFor(() => expect(hasType('ready')(events)).toBe(true))
    await server.tokens.revoke(info.id)
    await server.clock.advance(10_000)
    expect(await failed).toBeInstanceOf(ProblemError)
  })

  it('rejects when it cannot connect at first', async () => {
    const client = createClient({ url: 'http://127.0.0.1:1', token: 'x' })
    await expect(client.watchEvents().next()).rejects.toThrow('fetch failed')
  })

  it('ends the connection when the reader stops', async () => {
    const client = await server.client()
    const timers = await idleTimers()
    for await (const { type } of client.watchEvents()) if (type === 'ready') break
    await waitFor(() => expect(server.clock.pending()).toBe(timers))
  })
})

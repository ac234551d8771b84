import { Writable } from 'node:stream'
import pino from 'pino'
import { describe, expect, it } from 'vitest'
import { noProgress } from '../../src/letter/bulk-action.ts'
import { reschedule } from '../../src/letter/moves.ts'
import type { EventType, RedriveEvent } from '../../src/observer.ts'
import { logObserver } from '../../src/observers/log.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

const canary = 'canary-c4f1'
const at = '2026-01-01T00:00:00.000Z'

const letter = aLetter({
  queue: 'orders',
  payload: {
    bytes: Buffer.from(`{"secret":"${canary}"}`),
    contentType: 'application/json',
    size: 24,
    version: 1,
  },
  headers: { authorization: canary },
  metadata: { token: canary },
  failure: {
    name: 'Error',
    message: 'it broke\r\n{"level":"info"} \u001b[31mred \u202e' + 'x'.repeat(9000),
    causes: [],
    at,
  },
  lease: { worker: 'w1', epoch: 1, expiresAt: at },
})
const judged = {
  failure: letter.failure,
  category: 'network',
  severity: 'low',
  recoverability: 'retryable',
  fingerprint: 'f',
} as const
const mover = { at, actor: 'ada', guard: 'version' } as const

/** One event of each type. A missing type is a compile error. */
const events: { [T in EventType]: Extract<RedriveEvent, { type: T }> } = {
  captured: { type: 'captured', letter },
  duplicate: { type: 'duplicate', letter, occurrences: 2 },
  full: { type: 'full', queue: 'orders', maxItems: 10 },
  evicted: { type: 'evicted', count: 3 },
  started: { type: 'started', letter, worker: 'w1' },
  resolved: { type: 'resolved', letter, durationMs: 12.3 },
  rescheduled: { type: 'rescheduled', letter, durationMs: 1 },
  exhausted: { type: 'exhausted', letter },
  parked: { type: 'parked', letter },
  released: { type: 'released', letter },
  replayed: { type: 'replayed', letter },
  'lease-lost': { type: 'lease-lost', letter, worker: 'w1' },
  stuck: { type: 'stuck', letter, overdueMs: 5000 },
  changed: {
    type: 'changed',
    letter,
    change: reschedule(letter, mover, { judged, retryAt: at, backoffMs: 1 }),
  },
  removed: { type: 'removed', count: 1, by: 'ada', letter },
  swept: { type: 'swept', archived: 1, removed: 2, parked: 3 },
  alert: {
    type: 'alert',
    state: 'raised',
    alert: {
      name: 'a',
      severity: 'critical',
      metric: 'exhausted',
      value: 1,
      above: 0,
      summary: 'exhausted is 1, above 0',
      raisedAt: at,
    },
  },
  breaker: { type: 'breaker', kind: 'queue', name: 'orders', state: 'open', until: at },
  spooling: { type: 'spooling', place: '/var/spool', error: new Error('refused') },
  drained: { type: 'drained', count: 3, duplicates: 1 },
  'set-aside': { type: 'set-aside', what: 'damaged', file: '/var/spool/x', why: 'flipped' },
  bulk: {
    type: 'bulk',
    action: {
      id: 'b1',
      action: 'retry',
      filter: {},
      input: {},
      limits: { concurrency: 1 },
      state: 'running',
      by: 'ada',
      count: 0,
      states: {},
      queues: {},
      sample: [],
      ineligible: { count: 0, reasons: {}, sample: [] },
      progress: noProgress,
      plannedAt: at,
      expiresAt: at,
    },
  },
  'queue-paused': { type: 'queue-paused', queue: 'orders', by: 'ada', reason: 'migration', at },
  'queue-resumed': { type: 'queue-resumed', queue: 'orders', by: 'ada' },
  group: {
    type: 'group',
    fingerprint: 'f1',
    title: 'Error: disk full',
    at,
    by: 'letters',
    change: 'regress',
    from: 'resolved',
    to: 'regressed',
    note: 'in version 2.0.0',
  },
  error: { type: 'error', during: 'claiming', error: new Error('disk\nfull', { cause: 1 }) },
}

/** The lines that pino writes. */
function logged(...emitted: RedriveEvent[]): { text: string; lines: Record<string, unknown>[] } {
  let text = ''
  const sink = new Writable({
    write(chunk, _encoding, done) {
      text += String(chunk)
      done()
    },
  })
  const observer = logObserver(pino({ level: 'trace' }, sink))
  for (const event of emitted) observer(event)
  const lines = text.trimEnd().split('\n')
  return { text, lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>) }
}

describe('logObserver', () => {
  it('writes one line for every type of event', () => {
    const { lines } = logged(...Object.values(events))
    expect(lines.map(({ event }) => event)).toEqual(Object.keys(events))
    for (const { msg } of lines) expect(msg).toEqual(expect.any(String))
  })

  it('includes the id, the queue and the state of the letter', () => {
    const [line] = logged(events.resolved).lines
    const { id: letterId, state, category, fingerprint, retries } = letter
    expect(line).toMatchObject({
      letterId,
      queue: 'orders',
      state,
      category,
      fingerprint,
      retries,
      worker: 'w1',
      durationMs: 12,
    })
  })

  it.each<[EventType, number]>([
    ['started', 20],
    ['resolved', 30],
    ['captured', 40],
    ['parked', 40],
    ['exhausted', 50],
    ['error', 50],
    ['full', 50],
  ])('writes %s at level %i', (type, level) => {
    expect(logged(events[type]).lines[0]).toMatchObject({ level })
  })

  it('never contains a payload, headers or metadata', () => {
    expect(logged(...Object.values(events)).text).not.toContain(canary)
  })

  it('truncates error messages and escapes control characters', () => {
    const [line] = logged(events.captured).lines
    const error = String(line!['error'])
    expect(error).toContain('it broke\\u000d\\n{"level":"info"} \\u001b[31mred \\u202e')
    expect(error.length).toBeLessThan(700)
  })

  it('accepts any logger with the four methods', () => {
    const lines: [object, string][] = []
    const take = (fields: object, message: string): void => void lines.push([fields, message])
    logObserver({ debug: take, info: take, warn: take, error: take })(events.error)
    expect(lines).toEqual([
      [{ event: 'error', during: 'claiming', error: 'Error: disk\\nfull' }, 'error'],
    ])
  })
})

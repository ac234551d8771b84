import { describe, expect, it } from 'vitest'
import { verify, violationKinds, type DeadFact, type Evidence } from './verify.ts'
import type { Fact, Line } from './ledger.ts'
import { maxDeliveries, type MessageKind, type Plan } from './plan.ts'

const id = 'm'
const sha = 'abc'

function plan(kind: MessageKind = 'good', replies = false): Plan {
  return { n: 1, kind, workMs: 1, replies }
}

function sent(kind?: MessageKind, replies?: boolean): Fact[] {
  return [
    { e: 'send.try', id, sha, plan: plan(kind, replies) },
    { e: 'send.ok', id },
  ]
}

function times<T>(n: number, fact: (deliveries: number) => T): T[] {
  return Array.from({ length: n }, (_, index) => fact(index + 1))
}

const received = (deliveries: number): Fact => ({ e: 'received', id, deliveries, failures: 0 })
const started = (deliveries: number): Fact => ({ e: 'started', id, deliveries, failures: 0 })
const failed = (deliveries: number): Fact => ({ e: 'failed', id, deliveries })
const released = (deliveries: number): Fact => ({ e: 'release.try', id, deliveries })
const processed = { e: 'processed', id, deliveries: 1, sha } as const
const acked: Fact = { e: 'acked', id, deliveries: 1 }

function dead(errorType: string, more: Partial<DeadFact> = {}): DeadFact {
  return { id, place: 'mailbox', sha, errorType, deliveries: maxDeliveries, ...more }
}

/** The violations in facts that happened one after the other. */
function listViolations(facts: Fact[], more: Partial<Evidence> = {}): string[] {
  const lines = facts.map((fact, t): Line => ({ t, w: t, p: 'p', ...fact }))
  const findings = verify({ lines, dead: [], replies: [], left: 0, exact: true, ...more })
  return violationKinds.filter((kind) => findings[kind] > 0)
}

const enough = times(maxDeliveries, failed)

describe('verify', () => {
  it.each<[string, Fact[], Partial<Evidence>]>([
    ['processed', [...sent(), received(1), started(1), processed, acked], {}],
    ['processed twice', [...sent(), received(1), processed, received(2), processed], {}],
    [
      'released without a run many times',
      [
        ...sent(),
        ...times(maxDeliveries + 1, () => [received(1), started(1), released(1)]).flat(),
        received(1),
        processed,
        acked,
      ],
      {},
    ],
    ['dead after its failures', [...sent('doomed'), ...enough], { dead: [dead('Error')] }],
    ['dead because it cannot be decoded', sent('garbled'), { dead: [dead('UNDECODABLE')] }],
    [
      'dead after too many deliveries',
      [...sent('killer'), received(maxDeliveries + 1)],
      { dead: [dead('MaxDeliveriesExceeded', { deliveries: maxDeliveries + 1 })] },
    ],
    ['possibly never sent', sent().slice(0, 1), {}],
    [
      'dead twice where repeats cannot be recognised',
      [...sent('doomed'), ...enough],
      { dead: [dead('Error'), dead('Error')], exact: false },
    ],
    ['replied to when done', [...sent('good', true), processed], { replies: [{ id, ok: true }] }],
  ])('accepts a message that is %s', (_, facts, more) => {
    expect(listViolations(facts, more)).toEqual([])
  })

  it.each<[string, Fact[], Partial<Evidence>]>([
    ['lost', sent(), {}],
    ['ghost', [processed], {}],
    ['damaged', [...sent(), { ...processed, sha: 'other' }], {}],
    ['twice_dead', [...sent('doomed'), ...enough], { dead: [dead('Error'), dead('Error')] }],
    [
      'twice_dead',
      [...sent('doomed'), ...enough],
      {
        dead: [dead('Error', { place: 'letters' }), dead('Error', { place: 'letters' })],
        exact: false,
      },
    ],
    ['early_dead', [...sent('doomed'), ...enough.slice(1)], { dead: [dead('Error')] }],
    ['early_dead', sent(), { dead: [dead('UNDECODABLE')] }],
    [
      'early_dead',
      [...sent('killer'), received(maxDeliveries)],
      { dead: [dead('MaxDeliveriesExceeded')] },
    ],
    ['over_limit', [...sent(), ...times(maxDeliveries + 1, started), processed], {}],
    ['over_limit', [...sent(), started(maxDeliveries + 1), processed], { exact: false }],
    ['revived', [...sent(), received(1), processed, acked, received(2)], {}],
    ['revived', [...sent(), received(1), received(1), processed], {}],
    ['revived', [...sent(), received(1), released(1), received(1), received(1), processed], {}],
    [
      'unfenced',
      [...sent('doomed'), ...enough, received(5), { e: 'keep.try', id, deliveries: 4 }],
      { dead: [dead('Error')] },
    ],
    ['early_reply', [...sent(), processed], { replies: [{ id, ok: false }] }],
    ['unreplied', [...sent('good', true), processed, acked], {}],
    ['stuck', [...sent(), processed], { left: 1 }],
    ['broken', [{ e: 'exit', of: 'p', code: 1, signal: null }], {}],
    ['broken', [{ e: 'hung', of: 'p' }], {}],
  ])('finds a violation: %s', (kind, facts, more) => {
    expect(listViolations(facts, more)).toEqual([kind])
  })

  it('accepts a dead letter that was written while its delivery was valid', () => {
    const keep: Fact = { e: 'keep.try', id, deliveries: 4, since: 2 }
    const facts = [...sent('doomed'), keep, received(5), ...enough]
    expect(listViolations(facts, { dead: [dead('Error')] })).toEqual([])
  })
})

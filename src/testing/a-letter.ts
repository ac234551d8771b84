import { uuidMaker } from '../clock/clock.ts'
import type { DeadLetter, Failure, State } from '../letter/letter.ts'

/** Default time at which letters of `aLetter` failed, were captured and became due. */
const at = '2026-01-01T00:00:00.000Z'

const nextId = uuidMaker(
  () => Date.parse(at),
  (bytes) => void bytes.fill(0x5a),
)

/**
 * A valid letter, pending and due, with overrides. In another state it has the fields of that
 * state. Ids ascend in the order of creation.
 */
export function aLetter(overrides: Partial<DeadLetter> = {}): DeadLetter {
  const failure: Failure = { name: 'Error', message: 'it failed', causes: [], at }
  const state = overrides.state ?? 'pending'
  return {
    id: nextId(),
    version: 1,
    epoch: 0,
    occurrences: 1,
    queue: 'orders',
    source: { kind: 'operation', type: 'order.create' },
    payload: {
      bytes: new TextEncoder().encode('{"order":1}'),
      contentType: 'application/json',
      size: 11,
      version: 1,
    },
    metadata: {},
    tags: [],
    failure,
    firstFailure: overrides.failure ?? failure,
    category: 'transient',
    severity: 'medium',
    recoverability: 'retryable',
    fingerprint: 'f1',
    priority: 'medium',
    policy: { kind: 'immediate' },
    attempts: 1,
    retries: 0,
    maxRetries: 3,
    replays: 0,
    backoffMs: 0,
    state,
    failedAt: at,
    deadLetteredAt: at,
    updatedAt: at,
    history: [{ at, actor: 'capture', action: 'capture', from: null, to: state }],
    historyOmitted: 0,
    ...fieldsOfState[state](),
    ...overrides,
  }
}

/** Created for each call, since a test may change them. */
const fieldsOfState: Record<State, () => Partial<DeadLetter>> = {
  pending: () => ({ retryAt: at }),
  retrying: () => ({
    epoch: 1,
    retries: 1,
    lease: { worker: 'worker-0', epoch: 1, expiresAt: at },
  }),
  resolved: () => ({ settledAt: at }),
  exhausted: () => ({ settledAt: at, reason: 'retries-exhausted', retries: 3 }),
  parked: () => ({ settledAt: at, reason: 'permanent', review: { neededSince: at } }),
  archived: () => ({ settledAt: at, archivedFrom: 'resolved' }),
}

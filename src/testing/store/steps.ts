import assert from 'node:assert/strict'
import type { ErrorCode } from '../../errors.ts'
import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import type { Judged, Mover } from '../../letter/moves.ts'
import type { LetterQuery } from '../../letter/query.ts'
import { toMs, toTimestamp, type Timestamp } from '../../letter/time.ts'
import type { AddResult, ClaimRequest, Store } from '../../store.ts'
import type { StoreBench } from './check.ts'

/** Short enough to wait for, long enough not to expire between two calls. */
export const shortLeaseMs = 100
export const longLeaseMs = 60_000

export function ago(bench: StoreBench, ms: number): Timestamp {
  return toTimestamp(bench.now() - ms)
}

export function ahead(bench: StoreBench, ms: number): Timestamp {
  return toTimestamp(bench.now() + ms)
}

/**
 * Claims letters that become due at `dueAt`, and checks that they cannot be claimed before. On a
 * slow machine `dueAt` may have passed when the first claim returns; then the first claim may have
 * them.
 */
export async function claimWhenDue(bench: StoreBench, dueAt: Timestamp): Promise<DeadLetter[]> {
  const early = await claim(bench)
  if (early.length > 0) {
    assert.ok(bench.now() >= toMs(dueAt), `claimed before ${dueAt}`)
    return early
  }
  await bench.advance(120)
  return claim(bench)
}

/** A worker: its moves are guarded by its lease. */
export function worker(bench: StoreBench, name = 'worker-1'): Mover {
  return { at: toTimestamp(bench.now()), actor: name, guard: 'epoch' }
}

/** A person: the moves are guarded by the version that the person read. */
export function person(bench: StoreBench): Mover {
  return { at: toTimestamp(bench.now()), actor: 'ada', guard: 'version' }
}

/** A failure that differs from the default of `aLetter`. */
export function newFailure(bench: StoreBench): Judged {
  return {
    failure: {
      name: 'TimeoutError',
      message: 'no answer',
      code: 'ETIMEDOUT',
      causes: [],
      at: toTimestamp(bench.now()),
    },
    category: 'timeout',
    severity: 'high',
    recoverability: 'recoverable',
    fingerprint: 'f2',
  }
}

export async function claim(
  bench: StoreBench,
  request: Partial<ClaimRequest> = {},
): Promise<DeadLetter[]> {
  const fullRequest: ClaimRequest = {
    worker: 'worker-1',
    limit: 10,
    leaseMs: longLeaseMs,
    ...request,
  }
  return (await bench.store.claim(fullRequest)).letters
}

/** Claims and expects exactly one letter. */
export async function claimOne(
  bench: StoreBench,
  request: Partial<ClaimRequest> = {},
): Promise<DeadLetter> {
  const letters = await claim(bench, request)
  assert.equal(letters.length, 1, `expected one letter to claim, got ${letters.length}`)
  return letters[0]!
}

/** The stored letter. */
export async function getLetter(store: Store, id: string): Promise<DeadLetter> {
  const [letter] = await store.get([id])
  assert.ok(letter, `letter ${id} is not stored`)
  return letter
}

export function ids(letters: readonly { id: string }[]): string[] {
  return letters.map((letter) => letter.id)
}

export function kinds(results: readonly AddResult[]): string[] {
  return results.map((result) => result.kind)
}

/** Calls `run` with each item, a few at a time. Rejects with the first error. */
export async function eachOf<T>(
  items: readonly T[],
  run: (item: T) => Promise<void>,
  atOnce = 8,
): Promise<void> {
  const waiting = items.values()
  const worker = async (): Promise<void> => {
    for (const item of waiting) await run(item)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

/** All letters of a query, page by page. */
export async function findAll(store: Store, query: LetterQuery): Promise<LetterSummary[]> {
  const all: LetterSummary[] = []
  let cursor: string | undefined
  do {
    const page = await store.find({ ...query, ...(cursor === undefined ? {} : { cursor }) })
    all.push(...page.items)
    cursor = page.cursor
  } while (cursor !== undefined)
  return all
}

/** Equal in everything. Bytes are compared as bytes, since some drivers hand out Buffers. */
export function expectSameLetter(actual: DeadLetter, expected: DeadLetter): void {
  assert.deepEqual(plain(actual), plain(expected))
}

function plain(letter: DeadLetter): unknown {
  return { ...letter, payload: { ...letter.payload, bytes: Uint8Array.from(letter.payload.bytes) } }
}

export async function expectRejection(code: ErrorCode, act: () => Promise<unknown>): Promise<void> {
  await assert.rejects(
    act,
    (error: unknown) => (error as { code?: unknown }).code === code,
    `must reject with ${code}`,
  )
}

/** The count of one action over all queues and priorities. */
export async function totalOf(store: Store, action: string): Promise<number> {
  const totals = await store.totals()
  return totals
    .filter((total) => total.action === action)
    .reduce((sum, total) => sum + total.count, 0)
}

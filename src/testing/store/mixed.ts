import {
  categories,
  priorities,
  reasons,
  severities,
  states,
  type DeadLetter,
  type RetryPolicy,
} from '../../letter/letter.ts'
import type { LetterFilter } from '../../letter/query.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Powers } from '../../store.ts'
import { aLetter } from '../a-letter.ts'
import type { StoreBench } from './check.ts'

const dayMs = 86_400_000
const startMs = Date.UTC(2026, 0, 1)
const day = (n: number): string => toTimestamp(startMs + n * dayMs)

const policies: RetryPolicy[] = [
  { kind: 'never' },
  { kind: 'immediate' },
  { kind: 'fixed', delayMs: 1000 },
  { kind: 'linear', stepMs: 1000, maxMs: 5000 },
  { kind: 'exponential', baseMs: 1000, factor: 2, maxMs: 60_000, jitter: 'full' },
  { kind: 'custom', name: 'nightly' },
]

/** Names that an unescaped query would misinterpret. */
export const hostileNames = [
  "'; DROP TABLE letters; --",
  '../../etc/passwd',
  '%',
  '_',
  '*',
  'a:b',
  '{tag}',
  '\\',
  '"quoted"',
  '🦊 ünïcode',
  '__proto__',
  'constructor',
  'x'.repeat(200),
]

const messages = [
  'connect refused',
  '100% full',
  'a_b',
  'ÄRGER im Lager',
  'C:\\path',
  '',
  "it's 🦊",
]

/** Source ids that are hard to index: the last two differ only after the length of an index key. */
const hostileSourceIds = [...hostileNames, 'a\0b', `${'🦊'.repeat(3000)}1`, `${'🦊'.repeat(3000)}2`]

/** The source of the nth letter, and the task that has the source id of an operation. */
function sourceOf(n: number): Pick<DeadLetter, 'source' | 'task'> {
  const id = hostileSourceIds[Math.floor(n / 4) % hostileSourceIds.length]!
  const task = { id, description: 'a task', source: 'tracker' }
  const sources: Pick<DeadLetter, 'source' | 'task'>[] = [
    { source: { kind: 'workflow', name: 'nightly', taskId: id, targets: ['a'] } },
    { source: { kind: 'mailbox', mailbox: 'requests', messageId: id, deliveries: 5 } },
    {
      source: {
        kind: 'pipeline',
        cluster: 'c',
        node: 'n',
        topic: 't',
        partition: 0,
        offset: '0',
        streamId: id,
        hops: 1,
      },
    },
    { source: { kind: 'operation', type: 'order.create' }, ...(n % 8 === 3 ? { task } : {}) },
  ]
  return sources[n % 4]!
}

const metadatas: DeadLetter['metadata'][] = [
  {},
  { customer: 'x' },
  { customer: 'x', amount: 5, nested: { customer: 'y' } },
  { customer: 'X', amount: 5.5, urgent: true, none: null },
  { text: '"customer":"x"', 'a"b': 'c\\d', list: ['x'] },
]

/**
 * Letters that differ in every field of a filter. Many have the same timestamps, so that only their
 * ids differ.
 */
export function mixedLetters(count = 72): DeadLetter[] {
  return Array.from({ length: count }, (_, n) => mixedLetter(n))
}

function mixedLetter(n: number): DeadLetter {
  const pick = <T>(from: readonly T[], step = 1): T => from[Math.floor(n / step) % from.length]!
  const state = pick(states)
  const failure = {
    name: pick(['TypeError', 'HttpError'], 3),
    message: pick(messages),
    ...(n % 3 === 0 ? { code: pick(['ECONNRESET', 'E_%']) } : {}),
    causes: [],
    at: day(0),
  }
  return aLetter({
    state,
    queue: n % 4 === 3 ? pick(hostileNames, 4) : pick(['orders', 'mail', 'Orders'], 2),
    category: pick(categories),
    priority: pick(priorities, 5),
    policy: pick(policies, 2),
    fingerprint: pick(['f1', 'f2', 'F1', "f' 1"], 7),
    tags: [[], ['red'], ['red', 'blue'], ['RED', 'red'], ['blue', 'blue']][n % 5]!,
    failure,
    ...sourceOf(n),
    metadata: pick(metadatas),
    severity: pick(severities, 3),
    retries: n % 4,
    backoffMs: (n % 7) * 1000,
    deadLetteredAt: day(n % 6),
    ...(n % 3 === 1 ? { lane: pick(['l1', 'l2'], 3) } : {}),
    ...(n % 5 === 2 ? { tenant: pick(['acme', 'Acme'], 5) } : {}),
    ...(n % 4 === 1 ? { expiresAt: day(10 + (n % 3)) } : {}),
    ...(n % 7 === 3 ? { dependsOn: ['00000000-0000-7000-8000-000000000000'] } : {}),
    ...(n % 7 === 4 ? { dependsOn: [] } : {}),
    ...(state === 'pending' ? { retryAt: day(n % 5) } : {}),
    ...(state === 'parked' ? { reason: pick(reasons, 6) } : {}),
    ...(state === 'archived' && n % 12 === 5 ? { retryAt: day(3) } : {}),
    ...(state !== 'pending' && state !== 'retrying' ? { settledAt: day(n % 4) } : {}),
  })
}

/**
 * The filters for one of `parts` runs of a check, such as its run in one order. Each run has a
 * filter of each shape, which is its fields and whether they are lists. The filters that differ
 * from those in their values only are divided among the runs, unless the bench is thorough.
 */
export function filtersOfPart(
  { thorough = false }: StoreBench,
  filters: readonly LetterFilter[],
  part: number,
  parts: number,
): readonly LetterFilter[] {
  if (thorough) return filters
  const shapes = Map.groupBy(filters, (filter) =>
    JSON.stringify(
      Object.entries(filter).map(([key, value]) => [key, Array.isArray(value) && value.length > 0]),
    ),
  )
  return [...shapes.values()].flatMap(([first, ...others]) => [
    first!,
    ...others.filter((_, at) => at % parts === part),
  ])
}

/**
 * Filters for those letters: each field alone, lists, pairs, no match, and strings that look like
 * patterns. `text` is left out for stores without substring search.
 */
export function mixedFilters(letters: readonly DeadLetter[], powers: Powers): LetterFilter[] {
  const filters = allFilters(letters)
  return powers.search === 'substring' ? filters : filters.filter(({ text }) => text === undefined)
}

function allFilters(letters: readonly DeadLetter[]): LetterFilter[] {
  const some = letters.filter((_, n) => n % 9 === 0).map((letter) => letter.id)
  return [
    {},
    { ids: some },
    { ids: [] },
    { ids: some, state: 'archived' },
    { queue: 'orders' },
    { queue: ['orders', 'mail', 'nowhere'] },
    { queue: [] },
    { queue: 'ORDERS' },
    ...hostileNames.map((queue) => ({ queue })),
    ...states.map((state) => ({ state })),
    { state: ['archived', 'resolved'] },
    { state: [...states] },
    { category: 'timeout' },
    { category: ['network', 'unknown'], state: 'pending' },
    { priority: 'critical' },
    { priority: ['low', 'medium'], queue: 'mail' },
    { policy: 'exponential' },
    { reason: 'permanent' },
    { group: 'f1' },
    { group: "f' 1", state: 'exhausted' },
    { group: 'f2', queue: ['orders', 'Orders'] },
    { group: ['f1', "f' 1", 'none'] },
    { group: ['f2', 'f2'], state: ['pending', 'archived'] },
    { group: ['f1', 'f2'], tag: 'red' },
    { tag: 'red' },
    { tag: 'RED' },
    { tag: 'blue', state: ['pending', 'parked'] },
    { lane: 'l1' },
    { tenant: 'acme' },
    { tenant: 'Acme', state: 'archived' },
    ...hostileSourceIds.map((sourceId) => ({ sourceId })),
    { sourceId: 'nowhere' },
    { sourceId: '' },
    { sourceId: '%', state: ['pending', 'archived'] },
    { metadata: { customer: 'x' } },
    { metadata: { customer: 'x', amount: 5 }, state: [...states] },
    { metadata: { amount: 5 } },
    { metadata: { amount: '5' } },
    { metadata: { amount: 5.5 } },
    { metadata: { urgent: true } },
    { metadata: { none: null } },
    { metadata: { nothing: null } },
    { metadata: { constructor: 'x' } },
    { metadata: { 'a"b': 'c\\d' }, sourceId: '%' },
    { metadata: { customer: 'y' } },
    { metadata: { list: 'x' } },
    { text: 'REFUSED' },
    { text: '%' },
    { text: '_' },
    { text: 'ärger' },
    { text: '\\' },
    { text: '🦊' },
    { text: "'" },
    { text: '' },
    { text: 'econn', queue: 'mail' },
    { since: day(2) },
    { until: day(2) },
    { since: day(1), until: day(3) },
    { settledBefore: day(2) },
    { settledBefore: day(2), state: 'resolved' },
    { expiresBefore: day(11) },
    {
      state: 'pending',
      category: 'transient',
      priority: 'critical',
      policy: 'never',
      queue: 'orders',
    },
    { queue: 'nowhere' },
  ]
}

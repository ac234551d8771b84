import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import {
  archive,
  edit,
  exhaust,
  note,
  park,
  reschedule,
  resolve,
  retry,
  withChange,
  type Change,
  type Mover,
} from '../../../src/letter/moves.ts'
import { encodeChange, groupChanges } from '../../../src/stores/rows/change.ts'
import { at, columns, type Column } from '../../../src/stores/rows/columns.ts'
import { decodeLetter } from '../../../src/stores/rows/decode.ts'
import { encodeLetter } from '../../../src/stores/rows/encode.ts'
import { aLetter } from '../../../src/testing/index.ts'

const later = '2026-01-02T00:00:00.000Z'
const by: Mover = { at: later, actor: 'worker-0', guard: 'epoch' }
const person: Mover = { at: later, actor: 'ada', guard: 'version' }
const { failure } = aLetter()
const judged = {
  failure: { ...failure, message: 'another' },
  category: 'timeout',
  severity: 'high',
  recoverability: 'recoverable',
  fingerprint: 'f2',
} as const

const running = aLetter({ state: 'retrying' })
const parked = aLetter({ state: 'parked' })
const pending = aLetter()
const policy = { kind: 'fixed', delayMs: 5 } as const
const due = { judged, retryAt: later, backoffMs: 5, policy }
const cases: [name: string, letter: DeadLetter, change: Change][] = [
  ['resolve', running, resolve(running, by)],
  ['reschedule', running, reschedule(running, by, due)],
  ['exhaust', running, exhaust(running, by, { judged })],
  ['park', running, park(running, by, { judged, reason: 'permanent' })],
  ['retry', parked, retry(parked, person)],
  ['archive', pending, archive(pending, person)],
  ['note', running, note(running, { ...person, note: 'look' })],
  ['edit', pending, edit(pending, person, { tags: ['a'], priority: 'low', metadata: { a: 1 } })],
]

/** What a store writes: the columns that are set, one more version, and one more history line. */
function write(letter: DeadLetter, change: Change): DeadLetter {
  const { queue, row, body } = encodeLetter(letter)
  const { set, entry } = encodeChange(change)
  for (const [name, value] of Object.entries(set)) row[at[name as Column]] = value
  row[at.version] = (row[at.version] as number) + 1
  row[at.history] = `${row[at.history] as string}\n${entry}`
  return decodeLetter({ queue, row, ...body })
}

describe('encodeChange', () => {
  it.each(cases)('writes %s as withChange does', (_, letter, change) => {
    expect(write(letter, change)).toEqual(withChange(letter, change))
  })

  it('sets known columns only', () => {
    for (const [, , change] of cases)
      for (const name of Object.keys(encodeChange(change).set)) expect(columns).toContain(name)
  })

  it('leaves the due time of an edited letter as it is', () => {
    const { set, due: place } = encodeChange(cases.at(-1)![2])
    expect([set.state, set.due_at, place]).toEqual([undefined, undefined, undefined])
  })
})

describe('groupChanges', () => {
  it('groups changes that set the same columns', () => {
    const others = [aLetter({ state: 'retrying' }), aLetter({ state: 'retrying' })]
    const changes = [...others.map((one) => resolve(one, by)), exhaust(running, by, { judged })]
    const [round, ...more] = groupChanges(changes.map(encodeChange))
    expect(more).toEqual([])
    expect(round!.map((group) => group.changes.map(({ index }) => index))).toEqual([[0, 1], [2]])
  })

  it('writes changes of one letter in separate rounds', () => {
    const rounds = groupChanges([retry(parked, person), retry(parked, person)].map(encodeChange))
    expect(rounds.map((round) => round.flatMap((group) => group.changes.length))).toEqual([
      [1],
      [1],
    ])
  })
})

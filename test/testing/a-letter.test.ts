import { describe, expect, it } from 'vitest'
import { states } from '../../src/letter/letter.ts'
import { isLegal, moveTable, type Move } from '../../src/letter/move-table.ts'
import { claim, resolve } from '../../src/letter/moves.ts'
import { aLetter } from '../../src/testing/index.ts'

describe('aLetter', () => {
  it('creates a pending letter that is due', () => {
    const letter = aLetter()
    expect(letter.state).toBe('pending')
    expect(letter.retryAt! <= letter.deadLetteredAt).toBe(true)
    expect(letter.payload.size).toBe(letter.payload.bytes.length)
  })

  it('creates ascending ids', () => {
    const ids = Array.from({ length: 300 }, () => aLetter().id)
    expect(ids.toSorted()).toEqual(ids)
    expect(new Set(ids).size).toBe(300)
  })

  it.each(states)('sets the fields of a letter that is %s', (state) => {
    const letter = aLetter({ state })
    const atRest = state !== 'pending' && state !== 'retrying'
    expect({
      retryAt: letter.retryAt !== undefined,
      lease: letter.lease?.epoch === letter.epoch,
      settledAt: letter.settledAt !== undefined,
      archivedFrom: letter.archivedFrom !== undefined,
    }).toEqual({
      retryAt: state === 'pending',
      lease: state === 'retrying',
      settledAt: atRest,
      archivedFrom: state === 'archived',
    })
    expect(letter.history.at(-1)?.to).toBe(state)
  })

  it('applies overrides', () => {
    const failure = { name: 'E', message: 'm', causes: [], at: '2026-01-02T00:00:00.000Z' }
    const letter = aLetter({ queue: 'mail', failure, state: 'parked', reason: 'operator' })
    expect(letter).toMatchObject({
      queue: 'mail',
      failure,
      firstFailure: failure,
      reason: 'operator',
    })
  })

  it('shares nothing between letters', () => {
    for (const state of states) {
      const [one, two] = [aLetter({ state }), aLetter({ state })]
      for (const key of Object.keys(one) as (keyof typeof one)[])
        if (typeof one[key] === 'object') expect(one[key]).not.toBe(two[key])
      expect(one.payload).not.toBe(two.payload)
    }
  })

  it('creates letters that every move accepts', () => {
    const leased = claim(aLetter(), { worker: 'w', atMs: 0, leaseMs: 10 })
    const by = { at: leased.updatedAt, actor: 'w', guard: 'epoch' } as const
    expect(resolve(leased, by).set.state).toBe('resolved')
    for (const move of Object.keys(moveTable) as Move[])
      expect(states.some((state) => isLegal(move, aLetter({ state }).state))).toBe(true)
  })
})

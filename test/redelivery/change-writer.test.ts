import { describe, expect, it } from 'vitest'
import { resolve, type Change } from '../../src/letter/moves.ts'
import { ChangeWriter } from '../../src/redelivery/change-writer.ts'
import type { ApplyResult } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

function aChange(): Change {
  const letter = aLetter({ state: 'retrying', epoch: 1 })
  return resolve(letter, { at: letter.updatedAt, actor: 'w', guard: 'epoch' })
}

/** A writer, and the number of changes in each call of its store. */
function aWriter(apply: (changes: readonly Change[]) => ApplyResult[]) {
  const calls: number[] = []
  const store = memoryStore()
  store.apply = async (changes) => {
    calls.push(changes.length)
    return apply(changes)
  }
  return { writer: new ChangeWriter(store), calls }
}

describe('ChangeWriter', () => {
  it('writes the changes of one tick in one call, each with its own result', async () => {
    const [first, second, third] = [aChange(), aChange(), aChange()]
    const { writer, calls } = aWriter((changes) =>
      changes.map(({ id }) => (id === second.id ? 'conflict' : 'written')),
    )
    const results = await Promise.all([first, second].map((change) => writer.write(change)))
    expect(results).toEqual(['written', 'conflict'])
    expect(await writer.write(third)).toBe('written')
    expect(calls).toEqual([2, 1])
  })

  it('limits the number of changes in one call', async () => {
    const { writer, calls } = aWriter((changes) => changes.map(() => 'written'))
    await Promise.all(Array.from({ length: 600 }, () => writer.write(aChange())))
    expect(calls).toEqual([250, 250, 100])
  })

  it('rejects all changes of a call that fails, and none of the next call', async () => {
    let isDown = true
    const { writer } = aWriter((changes) => {
      if (isDown) throw new Error('down')
      return changes.map(() => 'written')
    })
    const results = await Promise.allSettled([writer.write(aChange()), writer.write(aChange())])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    isDown = false
    expect(await writer.write(aChange())).toBe('written')
  })
})

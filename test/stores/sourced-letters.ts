import assert from 'node:assert/strict'
import { sourceIdOf } from '../../src/letter/source-id.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { orders } from '../../src/letter/query.ts'
import type { Store } from '../../src/store.ts'
import { aLetter } from '../../src/testing/index.ts'

const workflow = (taskId: string): DeadLetter['source'] => ({
  kind: 'workflow',
  name: 'nightly',
  taskId,
  targets: ['a'],
})

/** Letters of every kind of source, with and without an id. */
export function sourcedLetters(): DeadLetter[] {
  return [
    aLetter({ source: workflow('wf_abc123') }),
    aLetter({ source: workflow('wf_abc123'), state: 'archived' }),
    aLetter({ source: workflow(`long ${'🦊'.repeat(400)} 1`) }),
    aLetter({ source: workflow(`long ${'🦊'.repeat(400)} 2`), state: 'parked' }),
    aLetter({ source: { kind: 'mailbox', mailbox: 'm', messageId: 'a\0"b"', deliveries: 2 } }),
    aLetter({ task: { id: 'T-7', description: 'answer', source: 'tracker' }, queue: 'mail' }),
    aLetter({ source: { kind: 'operation', type: 'a', context: { taskId: 'not-an-id' } } }),
    aLetter(),
  ]
}

/** Every source id leads to its letters, in every order, and to no other letter. */
export async function findsBySource(store: Store, letters: readonly DeadLetter[]): Promise<void> {
  const state = ['pending', 'parked', 'archived'] as const
  const known = new Set(letters.map(sourceIdOf).filter((id) => id !== undefined))
  assert.ok(known.size > 3)
  for (const sourceId of [...known, 'not-an-id', 'nowhere'])
    for (const order of orders) {
      const { items } = await store.find({ sourceId, state: [...state], order })
      assert.deepEqual(
        items.map(({ id }) => id).toSorted(),
        letters.filter((letter) => sourceIdOf(letter) === sourceId).map(({ id }) => id),
        `${order} ${sourceId.slice(0, 40)}`,
      )
    }
}

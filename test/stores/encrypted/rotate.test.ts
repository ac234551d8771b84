import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { edit, note, withChange, type Mover } from '../../../src/letter/moves.ts'
import { encodePayload } from '../../../src/letter/payload.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import type { Store } from '../../../src/store.ts'
import { encryptedStore } from '../../../src/stores/encrypted/encrypted.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { passThrough } from '../../../src/stores/pass-through.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { openSqliteBench } from '../sqlite/sqlite-bench.ts'
import { someKeys } from './an-encrypted-bench.ts'

const by: Mover = { at: '2026-01-01T00:00:00.000Z', actor: 'ann', guard: 'version' }

/** Letters with key one: new, edited, archived and dependent; one in plain; and a saved edit. */
async function fill(below: Store): Promise<DeadLetter[]> {
  const plain = aLetter({ payload: encodePayload({ n: 0 }), headers: { a: 'b' } })
  await below.add([plain])
  const store = encryptedStore(below, someKeys('one'))
  const first = aLetter({ payload: encodePayload({ n: 1 }), headers: { a: 'b' } })
  const archived = aLetter({ payload: encodePayload({ n: 2 }), state: 'archived' })
  const dependent = aLetter({ payload: encodePayload({ n: 3 }), dependsOn: [first.id] })
  await store.add([first, archived, dependent])
  const payload = { ...encodePayload({ n: 4 }), version: 2 }
  const change = edit(first, by, { payload })
  await store.apply([change])
  await store.records.put('edit', `${first.id}:1`, { tags: ['x'] })
  return [plain, withChange(first, change), archived, dependent]
}

const ids = (letters: readonly DeadLetter[]): string[] => letters.map(({ id }) => id)
const withoutVersion = (letters: readonly DeadLetter[]): object[] =>
  letters.map((letter) => ({ ...letter, version: 0 }))

async function expectRotated(below: Store, letters: readonly DeadLetter[]): Promise<void> {
  // Without the old key.
  const store = encryptedStore(below, someKeys('two'))
  expect(withoutVersion(await store.get(ids(letters)))).toEqual(withoutVersion(letters))
  expect((await store.original(letters[1]!.id))!.version).toBe(1)
  expect((await store.records.list('edit'))[0]!.value).toEqual({ tags: ['x'] })
  expect((await store.stored([letters[3]!.id]))[0]!.waitsFor).toEqual([letters[1]!.id])
  expect(await store.countKeys()).toEqual({
    current: 'two',
    letters: { two: letters.length },
    records: { two: 1 },
  })
}

/** A store whose process dies before or after its nth write. */
function dying(below: Store, deathAt: number, isAfter: boolean): Store {
  let writes = 0
  const mayDie = async <T>(write: () => Promise<T>): Promise<T> => {
    writes += 1
    if (writes < deathAt) return write()
    if (writes === deathAt && isAfter) await write()
    throw new Error('killed')
  }
  return passThrough(below, {
    keep: (letters: Parameters<Store['keep']>[0]) => mayDie(() => below.keep(letters)),
    records: passThrough(below.records, {
      put: (...args: Parameters<Store['records']['put']>) =>
        mayDie(() => below.records.put(...args)),
    }),
  })
}

describe('rotateKeys', () => {
  it('encrypts letters of all states and saved edits with the current key', async () => {
    const { store: below, close } = await openSqliteBench()
    const letters = await fill(below)
    const store = encryptedStore(below, someKeys('two', 'one'))
    expect(await store.countKeys()).toEqual({
      current: 'two',
      letters: { one: 3, '(none)': 1 },
      records: { one: 1 },
    })
    const totals = await below.totals()
    expect(await store.rotateKeys()).toEqual({
      current: 'two',
      checked: 5,
      rotated: 5,
      skipped: 0,
      failed: 0,
    })
    await expectRotated(below, letters)
    expect(await store.rotateKeys()).toMatchObject({ checked: 5, rotated: 0 })
    expect(await below.totals()).toEqual(totals)
    await close()
  })

  it.each([1, 2, 3, 4, 5].flatMap((at) => [true, false].map((isAfter) => [at, isAfter] as const)))(
    'continues after a kill at write %i (after it: %o)',
    async (at, isAfter) => {
      const below = memoryStore()
      const letters = await fill(below)
      const killed = encryptedStore(dying(below, at, isAfter), someKeys('two', 'one'))
      await expect(killed.rotateKeys()).rejects.toThrow('killed')
      const store = encryptedStore(below, someKeys('two', 'one'))
      // Every letter is readable in between.
      expect(withoutVersion(await store.get(ids(letters)))).toEqual(withoutVersion(letters))
      const { rotated, failed } = await store.rotateKeys()
      expect({ rotated, failed }).toEqual({ rotated: 5 - at + (isAfter ? 0 : 1), failed: 0 })
      await expectRotated(below, letters)
    },
  )

  it('neither overwrites nor restores what others change or remove meanwhile', async () => {
    const below = memoryStore()
    const [changed, removed, archived] = await fill(below)
    const racing = passThrough(below, {
      keep: async (kept: Parameters<Store['keep']>[0]) => {
        const { id } = kept[0]!.letter
        if (id === changed!.id) await below.apply([note(changed!, { ...by, note: 'mine' })])
        if (id === removed!.id) await below.remove({ ids: [id] })
        return below.keep(kept)
      },
    })
    const store = encryptedStore(racing, someKeys('two', 'one'))
    expect(await store.rotateKeys()).toMatchObject({ rotated: 3, skipped: 2 })
    expect(await store.get([removed!.id])).toEqual([])
    expect((await store.get([changed!.id]))[0]!.history.at(-1)!.note).toBe('mine')
    expect(await store.get([archived!.id])).toHaveLength(1)
    expect(await encryptedStore(below, someKeys('two', 'one')).rotateKeys()).toMatchObject({
      rotated: 1,
      skipped: 0,
    })
  })

  it('skips leased letters, and leaves what it cannot decrypt', async () => {
    const below = memoryStore()
    const store = encryptedStore(below, someKeys('one'))
    const letter = aLetter()
    await store.add([letter])
    const { letters } = await store.claim({ worker: 'w', limit: 1, leaseMs: 1000 })
    const rotating = encryptedStore(below, someKeys('two', 'one'))
    expect(await rotating.rotateKeys()).toMatchObject({ rotated: 0, skipped: 1 })
    expect(await store.get([letter.id])).toEqual(letters)
    await store.add([aLetter()])
    const lost = encryptedStore(below, someKeys('two'))
    expect(await lost.rotateKeys()).toMatchObject({ rotated: 0, skipped: 1, failed: 1 })
  })

  it('stops at a signal', async () => {
    const below = memoryStore()
    await fill(below)
    const store = encryptedStore(below, someKeys('two', 'one'))
    const signal = AbortSignal.abort()
    expect(await store.rotateKeys({ signal })).toMatchObject({ stopped: true, rotated: 0 })
  })

  it('is refused by a queue without keys', async () => {
    const dlq = await DeadLetterQueue.open('memory:')
    await expect(dlq.rotateKeys()).rejects.toMatchObject({ code: 'INVALID_CONFIG' })
    await expect(dlq.keyUse()).rejects.toMatchObject({ code: 'INVALID_CONFIG' })
    await dlq.close()
  })
})

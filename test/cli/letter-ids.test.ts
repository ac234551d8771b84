import { describe, expect, it } from 'vitest'
import { resolveId, shortIds } from '../../src/cli/letter-ids.ts'
import { readStoreLetters } from '../../src/cli/letter-reader.ts'
import type { Source } from '../../src/letter/letter.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

const ids = [
  '01995c3a-0000-7000-8000-000000000000',
  '01995c3a-1000-7000-8000-0000000001aa',
  '01995c3a-1000-7000-8000-0000000002bb',
  '01995c3b-0000-7000-8000-000000000000',
]

async function aStore() {
  const store = memoryStore()
  await store.open()
  await store.add(
    ids.map((id, place) => aLetter({ id, state: place === 2 ? 'archived' : 'pending' })),
  )
  return store
}

describe('shortIds', () => {
  it.each([
    [[3], ['01995c3b']],
    [
      [3, 0],
      ['01995c3b-0', '01995c3a-0'],
    ],
    [[1], ['01995c3a-1000…01aa']],
    [
      [1, 2],
      ['01995c3a-1000…01aa', '01995c3a-1000…02bb'],
    ],
    [[], []],
  ])(
    'distinguish letters %j from all others in the store, listed or not',
    async (places, expected) => {
      const store = await aStore()
      const listed = places.map((place) => ids[place]!)
      const short = await shortIds(readStoreLetters(store), listed)
      expect(listed.map(short)).toEqual(expected)
      expect(
        await Promise.all(expected.map((id) => resolveId(readStoreLetters(store), id))),
      ).toEqual(listed)
    },
  )

  it('are longer when the ends of the ids are equal, too', async () => {
    const store = memoryStore()
    await store.open()
    const twins = ['0', '1'].map((digit) => `01995c3a-1000-7000-8000-${digit}00000000000`)
    await store.add(twins.map((id) => aLetter({ id })))
    expect(twins.map(await shortIds(readStoreLetters(store), twins))).toEqual(
      twins.map((id) => id.slice(0, 25)),
    )
  })
})

describe('resolveId', () => {
  it.each([
    ['01995c3b', 3],
    ['01995C3B-0', 3],
    ['01995c3a-0', 0],
    ['01995c3a-1000-7000-8000-0000000002bb', 2],
    ['01995c3a…02bb', 2],
    ['01995c3a-1..AA', 1],
    ['01995c3b-…', 3],
  ])('finds the letter %s', async (given, place) => {
    expect(await resolveId(readStoreLetters(await aStore()), given)).toBe(ids[place])
  })

  it.each([
    ['01995c3a', 'INVALID_INPUT'],
    ['01995c3', 'INVALID_INPUT'],
    ['019', 'INVALID_INPUT'],
    ["01995c3a' OR 1=1", 'LETTER_NOT_FOUND'],
    ['01995c3c', 'LETTER_NOT_FOUND'],
    ['ffffffff', 'LETTER_NOT_FOUND'],
    ['01995c3a…ff', 'LETTER_NOT_FOUND'],
    ['01995c3a…', 'INVALID_INPUT'],
    ['…02bb', 'LETTER_NOT_FOUND'],
    ['wf_nowhere', 'LETTER_NOT_FOUND'],
  ])('rejects %s', async (given, code) => {
    await expect(resolveId(readStoreLetters(await aStore()), given)).rejects.toMatchObject({ code })
  })

  it('accepts four characters when only one id starts with them', async () => {
    const store = memoryStore()
    await store.open()
    await store.add([aLetter({ id: 'abcd5c3a-0000-7000-8000-000000000000' }), aLetter()])
    expect(await resolveId(readStoreLetters(store), 'abcd')).toBe(
      'abcd5c3a-0000-7000-8000-000000000000',
    )
  })

  it('accepts a source id', async () => {
    const store = memoryStore()
    await store.open()
    const workflow = aLetter({ source: sourceOf('wf_abc123'), state: 'archived' })
    const task = aLetter({ task: { id: 'T-7', description: '', source: 'tracker' } })
    await store.add([workflow, task, aLetter()])
    expect(await resolveId(readStoreLetters(store), 'wf_abc123')).toBe(workflow.id)
    expect(await resolveId(readStoreLetters(store), 'T-7')).toBe(task.id)
  })

  it('lists the letters when several have the source id', async () => {
    const store = memoryStore()
    await store.open()
    const letters = [1, 2].map(() => aLetter({ source: sourceOf('wf_twice') }))
    await store.add(letters)
    await expect(resolveId(readStoreLetters(store), 'wf_twice')).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: `"wf_twice" is the source id of several letters, give the id of one: ${letters[1]!.id}, ${letters[0]!.id}`,
    })
  })
})

const sourceOf = (taskId: string): Source => ({
  kind: 'workflow',
  name: 'nightly',
  taskId,
  targets: [],
})

import { describe, expect, it } from 'vitest'
import { resolveId, shortLength } from '../../src/cli/letter-ids.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

const ids = [
  '01995c3a-0000-7000-8000-000000000000',
  '01995c3a-1000-7000-8000-000000000000',
  '01995c3a-1000-7000-8000-00000000000f',
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

describe('shortLength', () => {
  it('tells letters from all others in the store, listed or not', async () => {
    const store = await aStore()
    expect(await shortLength(store, [ids[3]!])).toBe(8)
    expect(await shortLength(store, [ids[0]!])).toBe(10)
    expect(await shortLength(store, [ids[1]!])).toBe(36)
    expect(await shortLength(store, [])).toBe(8)
  })
})

describe('resolveId', () => {
  it.each([
    ['01995c3b', 3],
    ['01995C3B-0', 3],
    ['01995c3a-0', 0],
    ['01995c3a-1000-7000-8000-00000000000f', 2],
  ])('knows which letter %s is', async (given, place) => {
    expect(await resolveId(await aStore(), given)).toBe(ids[place])
  })

  it.each([
    ['01995c3a', 'INVALID_INPUT'],
    ['01995c3', 'INVALID_INPUT'],
    ["01995c3a' OR 1=1", 'INVALID_INPUT'],
    ['01995c3c', 'LETTER_NOT_FOUND'],
    ['ffffffff', 'LETTER_NOT_FOUND'],
  ])('refuses %s', async (given, code) => {
    await expect(resolveId(await aStore(), given)).rejects.toMatchObject({ code })
  })
})

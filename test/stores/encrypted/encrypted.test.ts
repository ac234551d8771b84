import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../../src/errors.ts'
import { withChange, archive, edit, type Mover } from '../../../src/letter/moves.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { encodePayload } from '../../../src/letter/payload.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import type { Store } from '../../../src/store.ts'
import { encryptedStore } from '../../../src/stores/encrypted/encrypted.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { addSpool } from '../../../src/stores/spool/spool.ts'
import { aLetter, fakeClock, type FakeClock } from '../../../src/testing/index.ts'
import {
  checksOf,
  runStoreContract,
  type ClosableBench,
} from '../../contract/run-store-contract.ts'
import { runStoreModel } from '../../contract/run-store-model.ts'
import { atDepth } from '../../depth.ts'
import { aFolder } from '../../folders.ts'
import { openSqliteBench } from '../sqlite/sqlite-bench.ts'
import { encryptBench, keys, someKeys } from './an-encrypted-bench.ts'

async function memoryBench(clock: FakeClock): Promise<ClosableBench> {
  const store = memoryStore({ clock })
  await store.open()
  const close = (): Promise<void> => store.close()
  return encryptBench({ store, now: () => clock.now(), advance: (ms) => clock.advance(ms), close })
}

runStoreContract('encryptedStore over memory', () => memoryBench(fakeClock()))
runStoreContract('encryptedStore over SQLite', async () => encryptBench(await openSqliteBench()), {
  inShort: checksOf('apply', 'keep', 'records', 'payloads'),
})
runStoreModel('encryptedStore over memory', memoryBench, { numRuns: atDepth(30, 100) })

const secret = 'canary-4711'
const by: Mover = { at: '2026-01-01T00:00:00.000Z', actor: 'ann', guard: 'version' }

function secretLetter(more: Partial<DeadLetter> = {}): DeadLetter {
  return aLetter({
    payload: encodePayload({ secret }),
    headers: { authorization: secret },
    ...more,
  })
}

/** A letter, edited twice, in an encrypted store; and the store below. */
async function storedLetter(): Promise<{ letter: DeadLetter; below: Store; store: Store }> {
  const below = memoryStore({ clock: fakeClock() })
  const store = encryptedStore(below, someKeys('one'))
  await store.open()
  let letter = secretLetter()
  await store.add([letter])
  for (const version of [2, 3]) {
    const payload = { ...encodePayload({ secret, version }), version }
    const change = edit(letter, by, { payload, headers: { cookie: secret } })
    expect(await store.apply([change])).toEqual(['written'])
    letter = withChange(letter, change)
  }
  return { letter, below, store }
}

/** Everything that the store below has, as text. */
async function dump(below: Store, id: string): Promise<string> {
  const [stored] = await below.stored([id])
  const contents = [stored!.letter.payload, stored!.original].map((payload) =>
    Buffer.from(payload?.bytes ?? []).toString('latin1'),
  )
  const records = await Promise.all(
    (await below.records.kinds()).map((kind) => below.records.list(kind)),
  )
  return JSON.stringify([stored, contents, records])
}

describe('encryptedStore', () => {
  it('takes a field `subject` as a data subject in saved edits only', async () => {
    const below = memoryStore({ clock: fakeClock() })
    const store = encryptedStore(below, someKeys('one'))
    await store.open()
    const value = { subject: 'the subject of a mail' }
    await store.records.put('view', 'a', value)
    expect(await store.records.get('view', 'a')).toMatchObject({ value })
    expect(await below.records.list('subject')).toEqual([])
  })

  it('gives the store below neither payloads nor headers nor saved edits', async () => {
    const { letter, below, store } = await storedLetter()
    await store.records.put('edit', `${letter.id}:1`, { headers: { a: secret } })
    expect(await dump(below, letter.id)).not.toContain(secret)
    expect(await store.get([letter.id])).toEqual([letter])
    expect((await store.records.get('edit', `${letter.id}:1`))?.value).toEqual({
      headers: { a: secret },
    })
    const [saved] = await store.records.list('edit')
    expect(saved?.value).toEqual({ headers: { a: secret } })
  })

  it('encrypts equal payloads differently', async () => {
    const { below, store } = await storedLetter()
    const [one, two] = [secretLetter(), secretLetter()]
    await store.add([one, two])
    const stored = await below.get([one.id, two.id])
    expect(stored[0]!.payload.bytes.slice(61)).not.toEqual(stored[1]!.payload.bytes.slice(61))
  })

  it('reads letters that were stored before, and encrypts them when they change', async () => {
    const below = memoryStore()
    const plain = secretLetter()
    await below.add([plain])
    const store = encryptedStore(below, someKeys('one'))
    expect(await store.get([plain.id])).toEqual([plain])
    const change = edit(plain, by, { payload: { ...plain.payload, version: 2 } })
    await store.apply([change])
    expect(await store.get([plain.id])).toEqual([withChange(plain, change)])
    expect((await below.get([plain.id]))[0]!.payload.keyId).toBe('redrive:one')
  })

  it('reads with an older key and writes with the current one', async () => {
    const { letter, below } = await storedLetter()
    const store = encryptedStore(below, someKeys('two', 'one'))
    const newer = secretLetter()
    await store.add([newer])
    expect(await store.get([letter.id, newer.id])).toEqual([letter, newer])
    expect((await below.get([newer.id]))[0]!.payload.keyId).toBe('redrive:two')
  })

  it.each([
    ['lost', someKeys('two'), /key one is unknown/],
    [
      'another one',
      { ...someKeys('two'), get: () => Buffer.from(keys.three, 'base64') },
      /key one is not the key/,
    ],
  ])('returns a letter whose key is %s encrypted, as corrupt', async (_, provider, why) => {
    const { letter, below } = await storedLetter()
    const store = encryptedStore(below, provider)
    const [read] = await store.get([letter.id])
    expect(read!.corrupt).toMatch(why)
    expect((await store.find({ payload: true })).items[0]!.corrupt).toMatch(why)
    expect((await store.stored([letter.id]))[0]!.letter.corrupt).toMatch(why)
    const [summary] = (await store.find({})).items
    expect(summary!.corrupt).toMatch(why)
    await expect(store.original(letter.id)).rejects.toMatchObject({
      code: 'DECRYPTION_FAILED',
      message: expect.stringMatching(new RegExp(`${letter.id} .*with key one`)) as string,
    })
    // It can be archived, and the key may come back.
    expect(await store.apply([archive(read!, by)])).toEqual(['written'])
    const [again] = await encryptedStore(below, someKeys('one')).get([letter.id])
    expect(again).toMatchObject({ payload: letter.payload, headers: letter.headers })
    expect(again!.corrupt).toBeUndefined()
    expect(await store.remove({ ids: [letter.id] })).toBe(1)
  })

  it('detects a change of any byte', async () => {
    const { letter, below, store } = await storedLetter()
    const [stored] = await below.stored([letter.id])
    const { bytes } = stored!.letter.payload
    for (const at of [0, 1, 20, 60, 61, 73, bytes.length - 1]) {
      const changed = bytes.slice()
      changed[at]! ^= 1
      stored!.letter.version += 1
      await below.keep([
        {
          ...stored!,
          letter: { ...stored!.letter, payload: { ...stored!.letter.payload, bytes: changed } },
        },
      ])
      expect((await store.get([letter.id]))[0]!.corrupt).toMatch(/changed/)
    }
  })

  it('detects ciphertext of another letter, version or length', async () => {
    const { letter, below, store } = await storedLetter()
    const other = secretLetter()
    await store.add([other])
    const [stored, foreign] = await below.stored([letter.id, other.id])
    const { payload } = stored!.letter
    const bytesOf = [
      foreign!.letter.payload.bytes,
      stored!.original!.bytes,
      payload.bytes.slice(0, -1),
      payload.bytes.slice(0, 40),
    ]
    for (const bytes of bytesOf) {
      stored!.letter.version += 1
      const moved = { ...stored!.letter, payload: { ...payload, bytes } }
      await below.keep([{ ...stored!, letter: moved }])
      expect((await store.get([letter.id]))[0]!.corrupt).toMatch(/cannot be decrypted/)
    }
    const headers = foreign!.letter.headers!
    await below.keep([
      { ...stored!, letter: { ...stored!.letter, headers, version: stored!.letter.version + 1 } },
    ])
    expect((await store.find({ ids: [letter.id] })).items[0]!.corrupt).toMatch(/moved/)
  })

  it('stores a header with the name of the encrypted ones like any other', async () => {
    const { store } = await storedLetter()
    const letter = secretLetter({ headers: { 'redrive-encrypted': 'one AAAA' } })
    await store.add([letter])
    expect(await store.get([letter.id])).toEqual([letter])
  })

  it('leaves a saved edit that it cannot decrypt encrypted in lists', async () => {
    const { below, store } = await storedLetter()
    await store.records.put('edit', 'a', { note: secret })
    const other = encryptedStore(below, someKeys('two'))
    expect(await other.records.list('edit')).toEqual(await below.records.list('edit'))
    await expect(other.records.get('edit', 'a')).rejects.toMatchObject({
      code: 'DECRYPTION_FAILED',
    })
  })

  it('keeps capturing with the last key while the provider fails, and claims nothing new', async () => {
    const provider = someKeys('one')
    let isDown = true
    const failing = {
      current: () => {
        if (isDown) throw new Error('no answer')
        return provider.current()
      },
      get: provider.get.bind(provider),
    }
    const store = encryptedStore(memoryStore(), failing)
    await expect(store.open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(store.claim({ worker: 'w', limit: 1, leaseMs: 100 })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    isDown = false
    await store.open()
    isDown = true
    const letter = secretLetter()
    expect(await store.add([letter])).toEqual([{ kind: 'added' }])
    expect(await store.get([letter.id])).toEqual([letter])
  })

  it('encrypts what waits in the spool', async () => {
    const path = aFolder('encrypted-spool')
    const away = memoryStore()
    away.add = () => Promise.reject(new RedriveError('STORE_UNAVAILABLE', 'away'))
    const store = encryptedStore(addSpool(away, { path }), someKeys('one'))
    await store.open()
    await store.add([secretLetter()])
    expect((await store.spool()).letters).toBe(1)
    for (const name of await readdir(path, { recursive: true })) {
      const contents = await readFile(join(path, name)).catch(() => Buffer.alloc(0))
      expect(contents.includes(secret)).toBe(false)
    }
    await store.close()
  })
})

describe('a queue with encryption', () => {
  const encryption = { keys: { one: keys.one }, current: 'one' }

  it('retries, edits, undoes and exports plain letters', async () => {
    const below = memoryStore()
    const dlq = await DeadLetterQueue.open(below, { encryption })
    const { id } = await dlq.enqueue({ type: 'pay', payload: { secret } }, new Error('no'))
    await dlq.edit(id, { payload: { secret, n: 2 }, by: 'ann', reason: 'fix' })
    await dlq.edit(id, { payload: { secret, n: 3 }, by: 'ann', reason: 'fix' })
    expect(await dump(below, id)).not.toContain(secret)
    await dlq.undoEdit(id, 'ann')
    const versions = await dlq.payloads(id)
    expect(
      versions.map(({ bytes }) => JSON.parse(Buffer.from(bytes).toString()) as unknown),
    ).toEqual([{ secret }, { secret, n: 2 }])
    const inputs: unknown[] = []
    dlq.handle('pay', async ({ input }) => void inputs.push(input))
    const resolved = new Promise((done) => dlq.on('resolved', done))
    await dlq.retry(id, 'ann')
    dlq.start()
    await resolved
    expect(inputs).toEqual([{ secret, n: 2 }])
    await dlq.close()
  })

  it('parks letters that it cannot decrypt, and refuses to edit and replay them', async () => {
    const below = memoryStore()
    const writer = encryptedStore(below, someKeys('one'))
    const letter = secretLetter({ queue: 'pay' })
    await writer.add([letter])
    for (const other of [{ encryption: { keys: { two: keys.two }, current: 'two' } }, {}]) {
      const dlq = await DeadLetterQueue.open(below, other)
      let runs = 0
      dlq.handle('pay', async () => void (runs += 1))
      const parkedNow = new Promise((done) => dlq.on('parked', done))
      dlq.start()
      await parkedNow
      await dlq.stop()
      expect(runs).toBe(0)
      const parked = await dlq.get(letter.id)
      expect(parked).toMatchObject({ state: 'parked', reason: 'malformed' })
      const failed = { code: 'DECRYPTION_FAILED' }
      const input = { payload: { n: 1 }, by: 'ann', reason: 'fix' }
      await expect(dlq.edit(letter.id, input)).rejects.toMatchObject(failed)
      await expect(dlq.replay(letter.id, 'ann')).rejects.toMatchObject(failed)
      await dlq.retry(letter.id, 'ann')
    }
    const [read] = await writer.get([letter.id])
    expect(read!.payload).toEqual(letter.payload)
  })

  it.each([
    [{ keys: { one: 'short' }, current: 'one' }, /the key one must be 32 bytes/],
    [{ keys: { one: keys.one }, current: 'two' }, /`current` must be the id of one of the keys/],
    [{ keys: { 'a b': keys.one }, current: 'a b' }, /key id "a b"/],
    [{ keys: { one: keys.one } }, /encryption/],
  ])('rejects %o without showing a key', async (wrong, message) => {
    const error: unknown = await DeadLetterQueue.open('memory:', {
      encryption: wrong as typeof encryption,
    }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      code: 'INVALID_CONFIG',
      message: expect.stringMatching(message) as string,
    })
    expect(String(error)).not.toContain(keys.one)
  })
})

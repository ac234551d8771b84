import { describe, expect, it } from 'vitest'
import { Cipher, type Place } from '../../../src/stores/encrypted/cipher.ts'
import { provideKeys } from '../../../src/check/encryption-keys.ts'

const provider = provideKeys({ keys: { a: Buffer.alloc(32, 1) }, current: 'a' })
const place: Place = { field: 'payload', id: 'letter-1', version: 1 }
const plain = new TextEncoder().encode('the payload')

async function sealed(): Promise<Uint8Array> {
  const cipher = new Cipher(provider)
  return cipher.seal(await cipher.dataKey(), plain, place)
}

describe('Cipher', () => {
  it('decrypts in another process what it encrypted', async () => {
    expect(await new Cipher(provider).open('a', await sealed(), place)).toEqual(plain)
  })

  it('encrypts empty bytes', async () => {
    const cipher = new Cipher(provider)
    const empty = cipher.seal(await cipher.dataKey(), new Uint8Array(0), place)
    expect(await cipher.open('a', empty, place)).toEqual(new Uint8Array(0))
  })

  it('never uses a nonce twice', async () => {
    const cipher = new Cipher(provider)
    const key = await cipher.dataKey()
    const nonces = Array.from({ length: 2000 }, () =>
      Buffer.from(cipher.seal(key, plain, place).slice(61, 73)).toString('hex'),
    )
    expect(new Set(nonces).size).toBe(2000)
  })

  it('rejects a change of any single bit', async () => {
    const cipher = new Cipher(provider)
    const bytes = await sealed()
    for (let at = 0; at < bytes.length * 8; at += 5) {
      const changed = bytes.slice()
      changed[at >> 3]! ^= 1 << (at & 7)
      await expect(cipher.open('a', changed, place)).rejects.toThrow()
    }
  })

  it('rejects every truncation', async () => {
    const bytes = await sealed()
    for (let length = 0; length < bytes.length; length++)
      await expect(new Cipher(provider).open('a', bytes.slice(0, length), place)).rejects.toThrow()
  })

  it.each<Partial<Place>>([{ field: 'headers' }, { id: 'letter-2' }, { version: 2 }])(
    'rejects a ciphertext at another place: %o',
    async (other) => {
      const opened = new Cipher(provider).open('a', await sealed(), { ...place, ...other })
      await expect(opened).rejects.toThrow('moved')
    },
  )

  it('uses a new data key when the current key changes', async () => {
    let current = 'a'
    const two = provideKeys({ keys: { a: Buffer.alloc(32, 1), b: Buffer.alloc(32, 2) }, current })
    const cipher = new Cipher({
      current: async () => ({ id: current, key: (await two.get(current))! }),
      get: (id) => two.get(id),
    })
    const first = await cipher.dataKey()
    expect(await cipher.dataKey()).toBe(first)
    current = 'b'
    const second = await cipher.dataKey()
    expect(second.keyId).toBe('b')
    expect(second.key.equals(first.key)).toBe(false)
  })

  it.each([
    [{ id: 'not an id', key: Buffer.alloc(32) }, /id of 1 to 100/],
    [{ id: 'a', key: Buffer.alloc(16) }, /32 bytes as key a/],
  ])('rejects a provider that returns %o', async (key, message) => {
    const cipher = new Cipher({ current: () => key, get: () => undefined })
    await expect(cipher.dataKey()).rejects.toThrow(message)
  })
})

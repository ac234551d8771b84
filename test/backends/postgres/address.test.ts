import { describe, expect, it } from 'vitest'
import { addressOf } from '../../../src/backends/postgres/address.ts'

const defaults = { schema: 'ours', poolSize: 4, leastPoolSize: 2 }

describe('addressOf', () => {
  it('removes our settings from the URL, and shows neither user nor password', () => {
    const url = 'postgres://u:hush@h:1/d?schema=s&sslmode=verify-full&poolSize=7&allowUnsafe=true'
    expect(addressOf({ url }, defaults)).toEqual({
      server: { url: 'postgres://u:hush@h:1/d?sslmode=verify-full' },
      schema: 's',
      poolSize: 7,
      allowUnsafe: true,
      place: 'postgres h:1/d',
    })
  })

  it('prefers options to the URL, and the URL to the defaults', () => {
    const url = 'postgresql:///d?schema=s&poolSize=7&allowUnsafe=true'
    expect(addressOf({ url, schema: 'o', poolSize: 3, allowUnsafe: false }, defaults)).toEqual({
      server: { url: 'postgresql:///d' },
      schema: 'o',
      poolSize: 3,
      allowUnsafe: false,
      place: 'postgres local socket/d',
    })
    expect(addressOf({ url: 'postgres://h' }, defaults)).toMatchObject({
      schema: 'ours',
      poolSize: 4,
      allowUnsafe: false,
    })
  })

  it.each([
    'mysql://u:hush@h/d',
    'hush',
    'postgres://u:hush@h/d?schema=a-b',
    'postgres://u:hush@h/d?poolSize=1',
    'postgres://u:hush@h/d?poolSize=501',
    'postgres://u:hush@h/d?poolSize=few',
    'postgres://u:hush@h/d?allowUnsafe=1',
  ])('rejects %s without showing a secret', (url) => {
    const read = (): unknown => addressOf({ url }, defaults)
    expect(read).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }))
    expect(read).not.toThrow(/hush/)
  })
})

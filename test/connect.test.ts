import { describe, expect, it } from 'vitest'
import { systemClock } from '../src/clock.ts'
import { connect } from '../src/connect.ts'

describe('connect', () => {
  it('gives the store of the scheme', async () => {
    expect((await connect('memory:', systemClock)).powers.kind).toBe('memory')
    expect((await connect('sqlite:x.db', systemClock)).powers.kind).toBe('sqlite')
  })

  it.each(['', 'redrive.db', 'mysql://root:secret@host/db', 'sqlite:', '__proto__:x'])(
    'refuses %j and says what a URL looks like',
    async (url) => {
      const refusal = connect(url, systemClock)
      await expect(refusal).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringContaining('sqlite:redrive.db') as string,
      })
      await expect(refusal).rejects.not.toThrow('secret')
    },
  )
})

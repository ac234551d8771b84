import { describe, expect, it } from 'vitest'
import { Sessions } from '../../../src/server/sign-in/sessions.ts'
import { Tokens } from '../../../src/server/tokens.ts'
import type { Store } from '../../../src/store.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { eachStore } from '../../each-store.ts'

describe.each(eachStore)('sessions in a %s store', (_, open) => {
  it('are known to all servers, and end on all of them', async () => {
    const clock = fakeClock()
    const { store, another, close } = await open(clock)
    const second = another && (await another())
    const serverOf = (own: Store): { sessions: Sessions; tokens: Tokens } => {
      const tokens = new Tokens({ store: own, clock })
      return { tokens, sessions: new Sessions({ store: own, clock, tokens }) }
    }
    try {
      const one = serverOf(store)
      const other = serverOf(second ?? store)
      const { token, info } = await one.tokens.create({
        name: 'mia',
        role: 'operator',
        queues: ['orders'],
        createdBy: 'test',
      })
      const [first, last] = [
        await one.sessions.create((await one.tokens.identify(token))!),
        await one.sessions.create((await other.tokens.identify(token))!),
      ]
      expect(await other.sessions.find(first.secret, true)).toEqual(first.identity)
      expect(first.identity).toMatchObject({ caller: { scope: { queues: ['orders'] } } })
      expect(await other.sessions.end(first.identity)).toBe(true)
      expect(await one.sessions.end(first.identity)).toBe(false)
      expect(await one.sessions.find(first.secret, true)).toBeUndefined()
      await clock.advance(120_000)
      const used = await Promise.all(
        [one, other].map(({ sessions }) => sessions.find(last.secret, true)),
      )
      expect(used.map((identity) => identity?.caller.name)).toEqual(['mia', 'mia'])
      await other.tokens.revoke(info.id)
      // Other servers may use a token that they have read for a second.
      await clock.advance(1000)
      expect(await one.sessions.find(last.secret, true)).toBeUndefined()
    } finally {
      await second?.close()
      await close()
    }
  })
})

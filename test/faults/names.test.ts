import dns from 'node:dns'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Store } from '../../src/store.ts'
import { systemClock } from '../../src/clock/clock.ts'
import { aLetter } from '../../src/testing/index.ts'
import { backends, connected, type Ground } from './backends.ts'
import { outcomeOf, persist } from './outcome.ts'
import { createProxy, type Proxy } from './proxy.ts'

const name = 'store.test'
/** Where the name leads; nothing means that nobody knows it. */
let address: string | undefined

/** Node looks names up in the system, so the system has to be told otherwise. */
const { lookup } = dns
const told = ((host: string, ...rest: unknown[]): void => {
  if (host !== name) {
    ;(lookup as (...args: unknown[]) => void)(host, ...rest)
    return
  }
  const answer = rest.at(-1) as (error: unknown, ...found: unknown[]) => void
  const all = (rest[0] as { all?: boolean }).all === true
  const unknown = Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' })
  process.nextTick(() => {
    if (address === undefined) answer(unknown)
    else if (all) answer(null, [{ address, family: 4 }])
    else answer(null, address, 4)
  })
}) as typeof dns.lookup

describe.each(Object.values(backends))('the name of a server: $name', ({ lacks, begin }) => {
  describe.skipIf(lacks)('that changes', () => {
    let ground: Ground
    let proxy: Proxy
    let store: Store
    beforeAll(async () => {
      ground = await begin()
    }, 60_000)
    afterAll(() => ground?.clear())
    beforeEach(async () => {
      dns.lookup = told
      address = '127.0.0.1'
      proxy = await createProxy(ground.url)
      store = await connected(proxy.through(ground.url).replace('127.0.0.1', name))
    })
    afterEach(async () => {
      await proxy.set('reset')
      await store.close()
      proxy.close()
      dns.lookup = lookup
    })

    const add = () => store.add([aLetter({ id: systemClock.id() })])

    it.each([
      ['is unknown for a while', undefined],
      ['leads to where nobody is for a while', '127.0.0.99'],
    ])('and %s is resolved again, without a restart', async (_, elsewhere) => {
      await store.open()
      await add()
      address = elsewhere
      await proxy.set('reset')
      await proxy.set('pass')
      const { error } = await outcomeOf(add())
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
      address = '127.0.0.1'
      expect((await persist(add)).value).toEqual([{ kind: 'added' }])
    })
  })
})

import dns from 'node:dns'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Store } from '../../src/store.ts'
import { systemClock } from '../../src/clock/clock.ts'
import { aLetter } from '../../src/testing/index.ts'
import { backends, connectStore, type Environment } from './backends.ts'
import { outcomeOf, retryUntilAnswered } from './outcome.ts'
import { createProxy, type Proxy } from './proxy.ts'

const name = 'store.test'
/** The address of the name; undefined: the name is unknown. */
let address: string | undefined

/** Replaces the lookup of the system for this one name. */
const { lookup } = dns
const fakeLookup = ((host: string, ...rest: unknown[]): void => {
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

describe.each(Object.values(backends))('the host name of a server: $name', ({ lacks, begin }) => {
  describe.skipIf(lacks)('that changes', () => {
    let environment: Environment
    let proxy: Proxy
    let store: Store
    beforeAll(async () => {
      environment = await begin()
    }, 60_000)
    afterAll(() => environment?.clear())
    beforeEach(async () => {
      dns.lookup = fakeLookup
      address = '127.0.0.1'
      proxy = await createProxy(environment.url)
      store = await connectStore(proxy.through(environment.url).replace('127.0.0.1', name))
    })
    afterEach(async () => {
      await proxy.set('reset')
      await store.close()
      proxy.close()
      dns.lookup = lookup
    })

    const add = () => store.add([aLetter({ id: systemClock.id() })])

    it.each([
      ['is temporarily unknown', undefined],
      ['temporarily has an address without a server', '127.0.0.99'],
    ])('and %s is resolved again, without a restart', async (_, elsewhere) => {
      await store.open()
      await add()
      address = elsewhere
      await proxy.set('reset')
      await proxy.set('pass')
      const { error } = await outcomeOf(add())
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
      address = '127.0.0.1'
      expect((await retryUntilAnswered(add)).value).toEqual([{ kind: 'added' }])
    })
  })
})

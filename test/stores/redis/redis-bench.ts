import { afterAll } from 'vitest'
import { sleep, systemClock } from '../../../src/clock.ts'
import type { Store } from '../../../src/store.ts'
import { redisStore } from '../../../src/stores/redis/redis.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/index.ts'
import type { ClosableBench } from '../../contract/run-store-contract.ts'
import { redisClusterPlace, redisPlace, type Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'

export const single = backend('redis')
export const cluster = backend('redis-cluster')

export interface RedisBench extends ClosableBench {
  prefix: string
}

/** One place for all benches of a test file, cleared once at its end: to look through all keys after each would take long. */
function benches(url: string, place: Place): (clock?: FakeClock) => Promise<RedisBench> {
  let count = 0
  afterAll(() => (count > 0 ? place.clear() : undefined))
  return (clock) => openBench(url, `${place.name}-${(count += 1)}`, clock)
}

/** A store under a prefix of its own, with its time in the hands of the test or, without a clock, of the server. */
async function openBench(url: string, prefix: string, clock?: FakeClock): Promise<RedisBench> {
  const opened: Store[] = []
  const open = async (): Promise<Store> => {
    const store = redisStore({ url, prefix, ...(clock ? { clock } : {}) })
    opened.push(store)
    await store.open()
    return store
  }
  return {
    store: await open(),
    prefix,
    now: () => (clock ?? systemClock).now(),
    advance: (ms) => (clock ? clock.advance(ms) : sleep(systemClock, ms)),
    another: open,
    reopen: async () => {
      await opened.at(-1)?.close()
      return open()
    },
    close: async () => {
      await Promise.all(opened.map((one) => one.close()))
    },
  }
}

const onServer = benches(single.url, redisPlace(single.url))
const onCluster = benches(cluster.url, redisClusterPlace(cluster.url))

export const openRedisBench = (clock = fakeClock()): Promise<RedisBench> => onServer(clock)

/** Like it is in production: the time is the server's. */
export const openServerTimeBench = (): Promise<RedisBench> => onServer()

export const openClusterBench = (clock = fakeClock()): Promise<RedisBench> => onCluster(clock)

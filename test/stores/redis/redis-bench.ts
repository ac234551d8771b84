import { redisStore } from '../../../src/stores/redis/redis.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/index.ts'
import type { ClosableBench } from '../../contract/run-store-contract.ts'
import { afterFile } from '../../after-file.ts'
import { redisClusterPlace, redisPlace, type Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'
import { openBench } from '../bench.ts'

export const single = backend('redis')
export const cluster = backend('redis-cluster')

export interface RedisBench extends ClosableBench {
  prefix: string
}

/**
 * One place for all benches of a test file, cleared once at its end: to look through all keys after
 * each would take long.
 */
function benches(url: string, place: Place): (clock?: FakeClock) => Promise<RedisBench> {
  let count = 0
  const { clear } = place
  return (clock) => {
    afterFile(clear)
    return openAt(url, `${place.name}-${(count += 1)}`, clock)
  }
}

/**
 * A store under a prefix of its own, with its time in the hands of the test or, without a clock, of
 * the server.
 */
async function openAt(url: string, prefix: string, clock?: FakeClock): Promise<RedisBench> {
  const time = clock ? { clock } : {}
  return { ...(await openBench(() => redisStore({ url, prefix, ...time }), clock)), prefix }
}

const onServer = benches(single.url, redisPlace(single.url))
const onCluster = benches(cluster.url, redisClusterPlace(cluster.url))

export const openRedisBench = (clock = fakeClock()): Promise<RedisBench> => onServer(clock)

/** Like it is in production: the time is the server's. */
export const openServerTimeBench = (): Promise<RedisBench> => onServer()

export const openClusterBench = (clock = fakeClock()): Promise<RedisBench> => onCluster(clock)

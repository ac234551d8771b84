import { Admin, ProtocolError } from '@platformatic/kafka'
import { expect, it } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { Cluster } from '../../src/kafka/cluster.ts'
import { Parts } from '../../src/kafka/parts.ts'
import { kafkaPlace } from '../servers/broker-places.ts'
import { backend } from '../servers/servers.ts'

const { url, missing } = backend('kafka')
const ignore = (): void => {}

it.skipIf(missing)(
  'what a former membership is refused takes nothing from the next one',
  { timeout: 60_000 },
  async () => {
    const place = kafkaPlace(url)
    const topic = `${place.name}.one`
    const admin = new Admin({ clientId: place.name, bootstrapBrokers: [url] })
    await admin.createTopics({ topics: [topic], partitions: 2, replicas: 1 })
    await expect.poll(() => admin.listTopics()).toContain(topic)
    const refusal = Promise.withResolvers<void>()
    let begun = 0
    const parts = new Parts({
      cluster: new Cluster({ url, clock: systemClock, timeoutMs: 5000, clientId: place.name }),
      groupId: `${place.name}.group`,
      topics: [topic],
      sessionMs: 6000,
      begin: (part) => {
        begun += 1
        return Object.assign(part, { entries: new Set(), bytes: 0 })
      },
      arrived: ignore,
      cut: ignore,
      leaving: async () => {},
      gone: ignore,
      trouble: ignore,
      well: ignore,
      commit: () => refusal.promise,
    })
    try {
      parts.group.join()
      await expect.poll(() => begun, { timeout: 20_000 }).toBe(2)
      const former = parts.all()
      const committed = parts.commit(former)
      await parts.group.leave()
      parts.group.join()
      await expect.poll(() => begun, { timeout: 20_000 }).toBe(4)
      const cause = new ProtocolError('UNKNOWN_MEMBER_ID')
      refusal.reject(new Error('refused', { cause }))
      await committed
      expect(former.map(({ isLost }) => isLost)).toEqual([true, true])
      expect(parts.all().map(({ isLost }) => isLost)).toEqual([false, false])
    } finally {
      await parts.close()
      await admin.close()
      await place.clear()
    }
  },
)

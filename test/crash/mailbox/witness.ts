import type { Message } from '../../../src/mailbox.ts'
import { moment } from '../ledger.ts'
import { codeOf } from '../witness.ts'
import type { Ledger } from './ledger.ts'
import { overlaid } from './overlaid.ts'
import { overWorld, type World } from './world.ts'

/**
 * A loop makes a receipt last for half a minute before it keeps a dead letter. Nobody here needs more than this, and what a
 * killed process held comes again sooner. No pause lasts as long.
 */
const longestExtensionSeconds = 5

/** A world that writes down what its loop sees and does. */
export function witnessed(world: World, ledger: Ledger): World {
  /** Since when deliveries are known to be ours. */
  const oursSince = new Map<string, number>()
  const watched = (message: Message): Message => {
    const { id, deliveries, failures } = message
    ledger.write({ e: 'received', id, deliveries, failures })
    return overlaid(message, {
      async acknowledge() {
        await message.acknowledge()
        ledger.write({ e: 'acked', id, deliveries })
      },
      async nack(options = {}) {
        if (options.failed === false) ledger.write({ e: 'release.try', id, deliveries })
        await message.nack(options)
      },
      async extend(seconds) {
        const since = moment().t
        await message.extend(Math.min(seconds, longestExtensionSeconds))
        oursSince.set(`${id} ${deliveries}`, since)
      },
      async reply(body) {
        try {
          return await message.reply(body)
        } catch (error) {
          ledger.write({ e: 'failed', id, deliveries })
          throw error
        }
      },
    })
  }
  return overWorld(world, {
    message: watched,
    keep: (inner) => async (dead, thrown) => {
      const { messageId: id, deliveryCount: deliveries } = dead
      const since = oursSince.get(`${id} ${deliveries}`)
      ledger.write({ e: 'keep.try', id, deliveries, ...(since === undefined ? {} : { since }) })
      try {
        await inner(dead, thrown)
      } catch (error) {
        ledger.write({ e: 'keep.fail', id, deliveries, code: codeOf(error) })
        throw error
      }
      ledger.write({ e: 'keep.ok', id, deliveries })
    },
  })
}

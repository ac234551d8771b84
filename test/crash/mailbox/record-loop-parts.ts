import type { Message } from '../../../src/mailbox.ts'
import { readClocks } from '../ledger.ts'
import { codeOf } from '../record-store.ts'
import type { Ledger } from './ledger.ts'
import { override } from '../override.ts'
import { wrapLoopParts, type LoopParts } from './loop-parts.ts'

/**
 * A loop extends a receipt by half a minute before it stores a dead letter. This limit suffices
 * here, and messages of a killed process return sooner. It is longer than any pause.
 */
const longestExtensionSeconds = 5

/** Wraps the loop parts and writes to the ledger what the loop receives and does. */
export function recordLoopParts(parts: LoopParts, ledger: Ledger): LoopParts {
  /** Time of the last successful ownership check, by delivery. */
  const ownedSince = new Map<string, number>()
  const record = (message: Message): Message => {
    const { id, deliveries, failures } = message
    ledger.write({ e: 'received', id, deliveries, failures })
    return override(message, {
      async acknowledge() {
        await message.acknowledge()
        ledger.write({ e: 'acked', id, deliveries })
      },
      async nack(options = {}) {
        if (options.failed === false) ledger.write({ e: 'release.try', id, deliveries })
        await message.nack(options)
      },
      async extend(seconds) {
        const since = readClocks().t
        await message.extend(Math.min(seconds, longestExtensionSeconds))
        ownedSince.set(`${id} ${deliveries}`, since)
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
  return wrapLoopParts(parts, {
    message: record,
    keep: (inner) => async (dead, thrown) => {
      const { messageId: id, deliveryCount: deliveries } = dead
      const since = ownedSince.get(`${id} ${deliveries}`)
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

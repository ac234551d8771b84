import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { Message } from '../../../src/mailbox.ts'
import type { Ledger } from './ledger.ts'
import { override } from '../override.ts'
import { planOf, type Point } from './plan.ts'
import { wrapLoopParts, type LoopParts } from './loop-parts.ts'

export interface Failpoints {
  /** Executes the planned fault for this point, the first time that any process reaches it. */
  reach: (
    point: Point,
    message: { id: string; headers: Readonly<Record<string, string>> },
  ) => Promise<void>
}

export interface FailpointSettings {
  /** The folder of the run, which also records the faults that already happened. */
  dir: string
  ledger: Ledger
  /** Makes the parent resume this process after a while. */
  wake: () => Promise<void>
}

const signals = { kill: 'SIGKILL', stop: 'SIGSTOP', term: 'SIGTERM' } as const

export function failpoints({ dir, ledger, wake }: FailpointSettings): Failpoints {
  return {
    async reach(point, { id, headers }) {
      const fault = planOf(headers)?.fault
      if (fault?.point !== point || !isFirst(dir, id)) return
      if (fault.act === 'stop') await wake()
      ledger.write({ e: 'fault', id, ...fault })
      process.kill(process.pid, signals[fault.act])
    },
  }
}

function isFirst(dir: string, id: string): boolean {
  try {
    closeSync(openSync(join(dir, `${id}.hit`), 'wx'))
    return true
  } catch {
    return false
  }
}

/** Wraps the loop parts so that processes die right before and after their calls to the broker. */
export function withFailpoints(parts: LoopParts, { reach }: Failpoints): LoopParts {
  const fragile = (message: Message): Message =>
    override(message, {
      async acknowledge() {
        await reach('before-ack', message)
        await message.acknowledge()
        await reach('after-ack', message)
      },
      async nack(options) {
        await reach('before-nack', message)
        await message.nack(options)
      },
    })
  return wrapLoopParts(parts, {
    message: fragile,
    received: async (messages) => {
      for (const message of messages) await reach('after-receive', message)
    },
    keep: (inner) => async (dead, thrown) => {
      const message = { id: dead.messageId, headers: dead.headers }
      await reach('before-keep', message)
      await inner(dead, thrown)
      await reach('after-keep', message)
    },
  })
}

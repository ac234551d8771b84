import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { Message } from '../../../src/mailbox.ts'
import type { Ledger } from './ledger.ts'
import { overlaid } from './overlaid.ts'
import { planOf, type Point } from './plan.ts'
import { overWorld, type World } from './world.ts'

export interface Failpoints {
  /** Does what the plan says for this point, the first time that any process comes to it. */
  reach: (
    point: Point,
    message: { id: string; headers: Readonly<Record<string, string>> },
  ) => Promise<void>
}

export interface FailpointSettings {
  /** Of the run: who was hit already is remembered there. */
  dir: string
  ledger: Ledger
  /** Has the parent let this process go on again after a while. */
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

/** A world in which processes die right before and after what they do to the broker. */
export function withFailpoints(world: World, { reach }: Failpoints): World {
  const fragile = (message: Message): Message =>
    overlaid(message, {
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
  return overWorld(world, {
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

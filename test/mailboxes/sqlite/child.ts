import { sqliteMailbox } from '../../../src/mailboxes/sqlite/sqlite.ts'

/*
 * Another process on the same file: `child.ts TASK PATH NAME`. It prints the ids that it handled,
 * one per line. It never calls process.exit: a mailbox that kept the process alive would be
 * noticed.
 */
const [task, path, name = 'child'] = process.argv.slice(2) as [string, string, string?]
const mailbox = sqliteMailbox({ path, name: 'shared' })
await mailbox.open()

const tasks: Record<string, () => Promise<void>> = {
  /** Sends one, and leaves the mailbox as it is. */
  leave: async () => void (await mailbox.send('left')),
  /** Sends some at a time. */
  send: async () => {
    const lanes = Array.from({ length: 10 }, async (_, lane) => {
      for (let n = 0; n < 20; n++)
        console.log(await mailbox.send('work', { id: `${name}:${lane}:${n}` }))
    })
    await Promise.all(lanes)
    await mailbox.close()
  },
  /** Receives and acknowledges until there is nothing left. */
  drain: async () => {
    const worker = async (): Promise<void> => {
      for (;;) {
        const batch = await mailbox.receive({ max: 3 })
        if (batch.length === 0) return
        for (const message of batch) {
          await message.acknowledge()
          console.log(message.id)
        }
      }
    }
    await Promise.all([worker(), worker(), worker()])
    await mailbox.close()
  },
  /** Receives one, for longer than it lives, and does nothing with it. */
  hold: async () => {
    const [message] = await mailbox.receive({ visibilitySeconds: 2, waitSeconds: 60 })
    console.log(message!.id)
    await mailbox.receive({ waitSeconds: 600 })
  },
  /** Says that it waits, receives one and acknowledges it. */
  wait: async () => {
    console.log('waiting')
    const [message] = await mailbox.receive({ waitSeconds: 60 })
    await message!.acknowledge()
    console.log(message!.id)
    await mailbox.close()
  },
}

await tasks[task]!()

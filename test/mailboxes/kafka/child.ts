import { kafkaMailbox } from '../../../src/mailboxes/kafka/kafka.ts'

/*
 * Another process on the same mailbox: `child.ts TASK URL PREFIX NAME`. It reports to stdout.
 */
const [task, url, prefix, name] = process.argv.slice(2) as [string, string, string, string]
const mailbox = kafkaMailbox({ name, url, prefix, sessionMs: 1000 })
await mailbox.open()

const tasks: Record<string, () => Promise<void>> = {
  /** Receives and acknowledges in a loop. */
  work: async () => {
    const worker = async (): Promise<void> => {
      for (;;)
        for (const message of await mailbox.receive({ max: 10, waitSeconds: 60 })) {
          await message.acknowledge()
          console.log(message.id)
        }
    }
    await Promise.all([worker(), worker(), worker()])
  },
  /** Exits when it receives the exit message, and nacks other messages. */
  die: async () => {
    for (;;)
      for (const message of await mailbox.receive({ max: 10, waitSeconds: 60 })) {
        if (message.value() === 'poison') process.kill(process.pid, 'SIGKILL')
        await message.acknowledge()
      }
  },
}

await tasks[task]!()

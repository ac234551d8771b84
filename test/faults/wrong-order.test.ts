import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { until } from '../../scripts/servers/machine.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import type { BugName } from '../crash/mailbox/bugs.ts'
import { names } from '../crash/mailbox/child.ts'
import { readDeadLetters } from '../crash/mailbox/dump.ts'
import { verify, type Findings } from '../crash/mailbox/verify.ts'
import { openLedger, readLedgers } from '../crash/mailbox/ledger.ts'
import { bytesOf, planHeader, type Plan } from '../crash/mailbox/plan.ts'
import { shaOf } from '../crash/plan.ts'
import { aFolder } from '../folders.ts'
import { fork, type ChildProcess } from '../processes.ts'
import { freshName } from '../servers/servers.ts'
import { mailboxKinds, type MailboxKind } from './mailbox-kinds.ts'

// The crash test runs the same consumers on the other kinds of mailboxes, with all planted bugs.
const { nats, sqs, kafka } = mailboxKinds

describe(
  'a consumer that dies before it has stored a dead message',
  { concurrent: true, timeout: 60_000 },
  () => {
    for (const kind of [nats, sqs, kafka]) {
      it.skipIf(kind.missing)(
        `of ${kind.kind} loses the message when it acknowledges first, and the ledger shows the loss`,
        () =>
          withMessage(kind, async ({ start, verify }) => {
            expect(await once(start('first', 'ack-before-keep'), 'exit')).toEqual([null, 'SIGKILL'])
            expect(await verify()).toMatchObject({ sent: 1, dead: 0, lost: 1, stuck: 0 })
          }),
      )

      it.skipIf(kind.missing)(
        `of ${kind.kind} leaves the message to the next consumer when it stores first`,
        () =>
          withMessage(kind, async ({ start, verify }) => {
            expect(await once(start('first'), 'exit')).toEqual([null, 'SIGKILL'])
            expect(await verify()).toMatchObject({ sent: 1, dead: 0, stuck: 1 })
            const next = start('second')
            await until(
              'the next consumer did not take the message',
              async () => (await verify()).stuck === 0,
              40,
            )
            next.kill('SIGTERM')
            await once(next, 'exit')
            expect(await verify()).toMatchObject({ sent: 1, dead: 1, lost: 0, stuck: 0 })
          }),
      )
    }
  },
)

/** An undecodable message, dead at once, that kills the first consumer about to store it. */
const plan: Plan = {
  n: 1,
  kind: 'garbled',
  workMs: 0,
  replies: false,
  fault: { act: 'kill', point: 'before-keep' },
}

interface Controls {
  start: (name: string, bug?: BugName) => ChildProcess
  verify: () => Promise<Findings>
}

const folder = aFolder('order')
const consumer = join(import.meta.dirname, '../crash/mailbox/consumer.ts')

/** Sends the message and lets the test start consumers of the crash test. */
async function withMessage(
  { begin }: MailboxKind,
  work: (given: Controls) => Promise<void>,
): Promise<void> {
  const environment = await begin()
  const dir = join(folder, freshName())
  const ledgers = join(dir, 'ledgers')
  const letters = `sqlite:${join(dir, 'letters.db')}`
  mkdirSync(ledgers, { recursive: true })
  const children: ChildProcess[] = []
  const mailbox = await openMailbox(environment.url(names.requests))
  try {
    const ledger = openLedger(ledgers, 'sender')
    const bytes = bytesOf(plan)
    const headers = { [planHeader]: JSON.stringify(plan) }
    ledger.write({ e: 'send.try', id: 'doomed', sha: shaOf(bytes), plan })
    await mailbox.send(bytes, { id: 'doomed', contentType: 'application/json', headers })
    ledger.write({ e: 'send.ok', id: 'doomed' })
    await work({
      start: (name, bug) => {
        const [url] = environment.url('').split('#')
        const settings = { dir: ledgers, name, seed: 1, url, letters, ...(bug ? { bug } : {}) }
        const child = fork(consumer, [JSON.stringify(settings)], { stdio: 'inherit' })
        children.push(child)
        return child
      },
      verify: async () =>
        verify({
          lines: readLedgers(ledgers),
          dead: await readDeadLetters(letters),
          replies: [],
          left: await mailbox.approximateCount(),
          exact: true,
        }),
    })
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await mailbox.close()
    await environment.clear()
  }
}

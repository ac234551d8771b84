import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMailbox } from '../../../src/connect/mailbox.ts'
import type { BulkAction } from '../../../src/letter/bulk-action.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { privateKafka, privateRabbitmq } from '../../servers/private.ts'
import { pause } from '../child.ts'

export interface BulkReplaySettings {
  broker: 'rabbitmq' | 'kafka'
  messages: number
}

export interface BulkReplayResult {
  action: BulkAction
  /** Messages that arrived more than once. */
  repeated: number
  problems: string[]
}

const brokers = { rabbitmq: privateRabbitmq, kafka: privateKafka }
const queue = 'requests'
const pollMs = 50
/** Empty answers after which everything has arrived, even on a busy machine. */
const maxWaits = 3

/** Replays many letters while their broker is restarted, and receives what arrives. */
export async function replayThroughRestart(
  settings: BulkReplaySettings,
): Promise<BulkReplayResult> {
  const dir = mkdtempSync(join(tmpdir(), 'redrive-replay-'))
  const server = await brokers[settings.broker]()
  try {
    const url = addressOf(settings.broker, server)
    // The queue is created first.
    await (await openMailbox(url)).close()
    const path = join(dir, 'letters.db')
    await seed(path, settings.messages)
    const { action, indeterminate } = await replayAll(path, url, server)
    // Received only now: after a restart a message could be delivered again.
    const arrivals = await receiveAll(url, settings.messages)
    return { action, ...compare(indeterminate, arrivals, settings) }
  } finally {
    await server.remove()
    rmSync(dir, { recursive: true, force: true })
  }
}

function addressOf(broker: BulkReplaySettings['broker'], { url }: PrivateServer): string {
  const base = url.includes('://') ? url : `${broker}://${url}`
  return `${base}#${queue}`
}

async function seed(path: string, messages: number): Promise<void> {
  const store = sqliteStore({ path })
  await store.open()
  for (let start = 0; start < messages; start += 1000)
    await store.add(
      Array.from({ length: Math.min(1000, messages - start) }, (_, index) =>
        aLetter({
          queue,
          state: 'parked',
          source: {
            kind: 'mailbox',
            mailbox: queue,
            messageId: `m${start + index}`,
            deliveries: 3,
          },
        }),
      ),
    )
  await store.close()
}

/** Runs the action, and restarts the broker when a third of the letters was published. */
async function replayAll(
  path: string,
  url: string,
  server: PrivateServer,
): Promise<{ action: BulkAction; indeterminate: Set<string> }> {
  const options = { mailboxes: { [queue]: url }, pollMs: 200, alerts: false } as const
  const dlq = await DeadLetterQueue.open(`sqlite:${path}`, options)
  try {
    const { id, count } = await dlq.plan('replay', { queue })
    dlq.start()
    await dlq.run(id)
    let action = await dlq.bulkAction(id)
    for (let isRestarted = false; action.state === 'running';) {
      if (!isRestarted && action.progress.pending < (count * 2) / 3) {
        isRestarted = true
        await server.stop()
        await server.start()
      }
      await pause(pollMs)
      action = await dlq.bulkAction(id)
    }
    return { action, indeterminate: await indeterminateOf(dlq, id) }
  } finally {
    await dlq.close()
  }
}

/** The original ids of letters that were perhaps published twice. */
async function indeterminateOf(dlq: DeadLetterQueue, id: string): Promise<Set<string>> {
  const ids = new Set<string>()
  for (let cursor: string | undefined; ;) {
    const page = await dlq.results(id, {
      outcome: 'indeterminate',
      limit: 1000,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const result of page.items) {
      const letter = await dlq.get(result.id)
      if (letter?.source.kind === 'mailbox') ids.add(letter.source.messageId)
    }
    if (page.cursor === undefined) return ids
    cursor = page.cursor
  }
}

/** How often each message arrived, by its original id. */
async function receiveAll(url: string, messages: number): Promise<Map<string, number>> {
  const arrivals = new Map<string, number>()
  const mailbox = await openMailbox(url)
  try {
    for (let count = 0, waits = 0; waits < maxWaits;) {
      const received = await mailbox.receive({
        max: 10,
        waitSeconds: arrivals.size < messages ? 5 : 1,
      })
      waits = received.length === 0 ? waits + 1 : 0
      count += received.length
      for (const { headers } of received) {
        const id = headers['redrive-original-id'] ?? ''
        arrivals.set(id, (arrivals.get(id) ?? 0) + 1)
      }
      await Promise.all(received.map((message) => message.acknowledge()))
      if (count > 3 * messages) throw new Error(`${count} messages arrived for ${messages} letters`)
    }
    return arrivals
  } finally {
    await mailbox.close()
  }
}

function compare(
  indeterminate: ReadonlySet<string>,
  arrivals: ReadonlyMap<string, number>,
  { messages }: BulkReplaySettings,
): Pick<BulkReplayResult, 'repeated' | 'problems'> {
  const problems: string[] = []
  let repeated = 0
  for (let number = 0; number < messages; number += 1) {
    const id = `m${number}`
    const count = arrivals.get(id) ?? 0
    if (count === 0) problems.push(`${id} did not arrive`)
    if (count > 1) repeated += 1
    if (count > 1 && !indeterminate.has(id))
      problems.push(`${id} arrived ${count} times, its result does not say so`)
  }
  return { repeated, problems }
}

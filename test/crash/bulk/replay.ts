import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMailbox } from '../../../src/connect/mailbox.ts'
import type { BulkAction, BulkResult } from '../../../src/letter/bulk-action.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import type { Store } from '../../../src/store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { privateKafka, privateRabbitmq } from '../../servers/private.ts'
import { pause } from '../child.ts'

export interface BulkReplaySettings {
  broker: 'rabbitmq' | 'kafka'
  messages: number
}

export interface ReplayRun {
  /** The mailbox that the letters are replayed to, as the action reaches it. */
  url: string
  /** The same mailbox, without interruptions. */
  directUrl: string
  messages: number
  /** Called once, when a third of the letters was published. */
  interrupt: () => Promise<void>
  /** Plants a bug in the store of the action. */
  plant?: (store: Store) => Store
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
  const server = await brokers[settings.broker]()
  try {
    const url = addressOf(settings.broker, server)
    const interrupt = async (): Promise<void> => {
      await server.stop()
      await server.start()
    }
    return await replayThrough({ url, directUrl: url, messages: settings.messages, interrupt })
  } finally {
    await server.remove()
  }
}

/** Replays many letters through an interruption, and receives what arrives. */
export async function replayThrough(run: ReplayRun): Promise<BulkReplayResult> {
  const dir = mkdtempSync(join(tmpdir(), 'redrive-replay-'))
  try {
    // The queue is created first.
    await (await openMailbox(run.directUrl)).close()
    const path = join(dir, 'letters.db')
    const messageIds = await seed(path, run.messages)
    const { action, results } = await replayAll(path, run)
    // Received only now: after a restart a message could be delivered again.
    const arrivals = await receiveAll(run.directUrl, run.messages)
    const outcomes = new Map(results.map(({ id, outcome }) => [messageIds.get(id)!, outcome]))
    return { action, ...compare([...messageIds.values()], outcomes, arrivals) }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

function addressOf(broker: BulkReplaySettings['broker'], { url }: PrivateServer): string {
  const base = url.includes('://') ? url : `${broker}://${url}`
  return `${base}#${queue}`
}

/** Stores letters of messages. Returns the ids of the messages by the ids of their letters. */
async function seed(path: string, messages: number): Promise<Map<string, string>> {
  const store = sqliteStore({ path })
  await store.open()
  const ids = new Map<string, string>()
  for (let start = 0; start < messages; start += 1000) {
    const letters = Array.from({ length: Math.min(1000, messages - start) }, (_, index) => {
      const messageId = `m${start + index}`
      const source = { kind: 'mailbox', mailbox: queue, messageId, deliveries: 3 } as const
      const letter = aLetter({ queue, state: 'parked', source })
      ids.set(letter.id, messageId)
      return letter
    })
    await store.add(letters)
  }
  await store.close()
  return ids
}

/** Runs the action, and interrupts it when a third of the letters was published. */
async function replayAll(
  path: string,
  { url, interrupt, plant = (store) => store }: ReplayRun,
): Promise<{ action: BulkAction; results: BulkResult[] }> {
  const options = { mailboxes: { [queue]: url }, pollMs: 200, alerts: false } as const
  const dlq = await DeadLetterQueue.open(plant(sqliteStore({ path })), options)
  try {
    const { id, count } = await dlq.plan('replay', { queue })
    let interrupted: Promise<void> | undefined
    dlq.on('bulk', ({ action: { progress } }) => {
      if (progress.pending < (count * 2) / 3) interrupted ??= interrupt()
    })
    dlq.start()
    await dlq.run(id)
    let action = await dlq.bulkAction(id)
    while (action.state === 'running') {
      await pause(pollMs)
      action = await dlq.bulkAction(id)
    }
    await interrupted
    return { action, results: await resultsOf(dlq, id) }
  } finally {
    await dlq.close()
  }
}

async function resultsOf(dlq: DeadLetterQueue, id: string): Promise<BulkResult[]> {
  const results: BulkResult[] = []
  for (let cursor: string | undefined; ;) {
    const page = await dlq.results(id, { limit: 1000, ...(cursor === undefined ? {} : { cursor }) })
    results.push(...page.items)
    if (page.cursor === undefined) return results
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

/** Compares the results of the action with what arrived, by the ids of the messages. */
export function compare(
  messageIds: readonly string[],
  outcomes: ReadonlyMap<string, BulkResult['outcome']>,
  arrivals: ReadonlyMap<string, number>,
): Pick<BulkReplayResult, 'repeated' | 'problems'> {
  const problems: string[] = []
  let repeated = 0
  for (const id of messageIds) {
    const count = arrivals.get(id) ?? 0
    const outcome = outcomes.get(id)
    if (count > 1) repeated += 1
    if (count === 0) problems.push(`${id} did not arrive`)
    if (outcome === undefined) problems.push(`${id} has no result`)
    else if (outcome !== 'succeeded' && outcome !== 'indeterminate')
      problems.push(`${id} is ${outcome}`)
    if (count > 1 && outcome === 'succeeded')
      problems.push(`${id} arrived ${count} times, its result does not say so`)
  }
  return { repeated, problems }
}

// Each planted bug in the shortest course of events that shows it: several consumers in virtual
// time, in one real process. `npm run crash -- --mailbox sqlite --bugs` plants the same bugs among
// real kills.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { sleep, systemClock } from '../../../src/clock/clock.ts'
import { mailboxDestination, type Destination } from '../../../src/loops/destination.ts'
import type { MainLoop } from '../../../src/loops/main-loop.ts'
import type { Mailbox } from '../../../src/mailbox.ts'
import { memoryMailbox } from '../../../src/mailboxes/memory/memory.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { readClocks } from '../ledger.ts'
import { override } from '../override.ts'
import { shaOf } from '../plan.ts'
import { bugNames, bugs, type BugName } from './bugs.ts'
import { names } from './child.ts'
import { consumerLoop } from './consumer-loop.ts'
import { deadLettersIn, deadMessagesIn, repliesIn } from './dump.ts'
import type { Failpoints } from './failpoints.ts'
import type { Fact, Line } from './ledger.ts'
import type { LoopParts } from './loop-parts.ts'
import { bytesOf, planHeader, planOf, stopMs, type Plan } from './plan.ts'
import { pauseMs } from './process-group.ts'
import { verify, violationKinds, type ViolationKind } from './verify.ts'

/** Enough for all deliveries of a message, each of them by a process that dies. */
const runMs = 60_000
const never = (): Promise<never> => new Promise(() => {})

beforeEach(() => vi.useFakeTimers())
afterEach(() => {
  vi.clearAllTimers()
  vi.useRealTimers()
})

/** Mailboxes and letters, and consumers that share them. A dead consumer is replaced. */
class World {
  readonly #lines: Line[] = []
  readonly #bug: BugName | undefined
  readonly #mailboxes = new Map<string, Mailbox>()
  readonly #queue: DeadLetterQueue
  readonly #hits = new Set<string>()
  #started = 0

  private constructor(bug: BugName | undefined, queue: DeadLetterQueue) {
    this.#bug = bug
    this.#queue = queue
    const resolver = { resolve: (name: string) => this.#mailboxes.get(name) }
    for (const name of Object.values(names))
      this.#mailboxes.set(name, memoryMailbox({ name, resolver }))
  }

  static async open(bug: BugName | undefined): Promise<World> {
    return new World(bug, await DeadLetterQueue.open(memoryStore()))
  }

  #write(p: string, fact: Fact): void {
    this.#lines.push({ ...readClocks(), p, ...fact })
  }

  async send(plan: Plan): Promise<void> {
    const [id, body] = [`m-${plan.n}`, bytesOf(plan)]
    this.#write('producer', { e: 'send.try', id, sha: shaOf(body), plan })
    await this.#mailboxes.get(names.requests)!.send(body, {
      id,
      contentType: 'application/json',
      headers: { [planHeader]: JSON.stringify(plan) },
      ...(plan.replies ? { replyTo: names.replies } : {}),
    })
    this.#write('producer', { e: 'send.ok', id })
  }

  startConsumer(): void {
    const name = `consumer-${++this.#started}`
    /** Pending while the process is stopped, and for ever once it is dead. */
    let stopped: Promise<void> = Promise.resolve()
    const die = (): Promise<never> => {
      stopped = never()
      this.startConsumer()
      return never()
    }
    let loop: MainLoop
    const faults: Failpoints = {
      reach: async (point, { id, headers }) => {
        await stopped
        const fault = planOf(headers)?.fault
        if (fault?.point !== point || this.#hits.has(id)) return
        this.#hits.add(id)
        if (fault.act === 'kill') await die()
        else if (fault.act === 'term') {
          void loop.shutdown({ timeoutMs: stopMs })
          this.startConsumer()
        } else {
          stopped = sleep(systemClock, pauseMs)
          await stopped
        }
      },
    }
    const parts = stoppable(
      {
        requests: this.#mailboxes.get(names.requests)!,
        dead: mailboxDestination(this.#mailboxes.get(names.dead)!),
        letters: this.#queue.deadLetters(),
      },
      () => stopped,
    )
    const ledger = { write: (fact: Fact) => this.#write(name, fact) }
    loop = consumerLoop({ parts, ledger, faults, bug: this.#bug, die })
    void loop.run()
  }

  /** The violations that the evidence shows. */
  async violations(): Promise<ViolationKind[]> {
    const [dead, replies] = [names.dead, names.replies].map((name) => this.#mailboxes.get(name)!)
    const reading = Promise.all([
      deadMessagesIn(dead!),
      deadLettersIn(this.#queue),
      repliesIn(replies!),
    ])
    await vi.advanceTimersByTimeAsync(5000)
    const [messages, letters, answered] = await reading
    const findings = verify({
      lines: this.#lines,
      dead: [...messages, ...letters],
      replies: answered,
      left: await this.#mailboxes.get(names.requests)!.approximateCount(),
      exact: true,
    })
    return violationKinds.filter((kind) => findings[kind] > 0)
  }
}

/** Parts whose calls wait while their process is stopped. */
function stoppable(
  { requests, dead, letters }: LoopParts,
  untilWoken: () => Promise<void>,
): LoopParts {
  const whenWoken =
    <A extends unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      await untilWoken()
      return call(...args)
    }
  const destination = (one: Destination): Destination =>
    override(one, { keep: whenWoken((...args) => one.keep(...args)) })
  const receive = whenWoken(async (...args: Parameters<Mailbox['receive']>) => {
    const messages = await requests.receive(...args)
    await untilWoken()
    return messages.map((message) =>
      override(message, {
        acknowledge: whenWoken(() => message.acknowledge()),
        nack: whenWoken((options) => message.nack(options)),
        extend: whenWoken((seconds) => message.extend(seconds)),
        reply: whenWoken((body) => message.reply(body)),
      }),
    )
  })
  return {
    requests: override(requests, { receive }),
    dead: destination(dead),
    letters: destination(letters),
  }
}

/** Runs the messages that show a bug: one for each destination of dead letters, and a good one. */
async function runWith(bug: BugName | undefined, shown: BugName): Promise<ViolationKind[]> {
  const { fault } = bugs[shown]
  const kind = shown === 'uncounted-deliveries' ? 'killer' : 'doomed'
  const workMs = fault?.act === 'term' ? 3 * stopMs : 10
  const plan = { kind, workMs, replies: true, ...(fault ? { fault } : {}) } as const
  const world = await World.open(bug)
  world.startConsumer()
  world.startConsumer()
  await world.send({ n: 0, ...plan })
  await world.send({ n: 1, ...plan })
  await world.send({ n: 2, kind: 'good', workMs: 10, replies: true })
  await vi.advanceTimersByTimeAsync(runMs)
  return world.violations()
}

describe('the crash test of loops', () => {
  it.each(bugNames)('catches the planted bug %s', async (bug) => {
    const found = await runWith(bug, bug)
    expect(bugs[bug].shows.filter((kind) => found.includes(kind))).not.toEqual([])
  })

  it.each(bugNames)('finds nothing in loops without the bug %s', async (bug) => {
    expect(await runWith(undefined, bug)).toEqual([])
  })
})

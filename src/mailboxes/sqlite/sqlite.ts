import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import type {
  ReceiveRequest,
  Delivery,
  Mailbox,
  MailboxDriver,
  MailboxHealth,
  MailboxPowers,
  MailboxResolver,
  OutgoingMessage,
} from '../../mailbox.ts'
import { mailbox } from '../mailbox.ts'
import { retentionMsOf } from '../../backends/retention.ts'
import { useFile, type MailFile } from './file.ts'
import { aboutOf, toOutgoingMessage } from '../stored-message.ts'
import type { Held, StoredMessage } from './protocol.ts'
import type { Retention } from './protocol.ts'
import { SharedReceiver } from '../shared-receiver.ts'

export interface SqliteMailboxOptions {
  /**
   * Path of the file. A missing file is created, readable by its owner only. Any number of
   * mailboxes may share it.
   */
  path: string
  name: string
  clock?: Clock
  resolver?: MailboxResolver
  /**
   * Messages older than this are removed when somebody receives from the mailbox. Default: 0, which
   * keeps them for ever.
   */
  retentionSeconds?: number
}

const optionKeys = keysOf<SqliteMailboxOptions>({
  path: true,
  name: true,
  clock: true,
  resolver: true,
  retentionSeconds: true,
})

/** A mailbox in a SQLite file, for one machine and any number of its processes. */
export function sqliteMailbox(options: SqliteMailboxOptions): Mailbox {
  checkKeys('sqlite mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  const { clock = systemClock, resolver, retentionSeconds = 0 } = options
  const driver = new SqliteMailbox(options, clock)
  return mailbox(driver, { clock, retentionSeconds, ...(resolver ? { resolver } : {}) })
}

/** This many bytes cost as much as a message without a body. */
const bytesPerCost = 16 * 1024

/** How often the file is checked for messages of other processes. */
const pollMs = 100

interface Opened {
  file: MailFile
  /** Number of the mailbox in the file. */
  number: number
  receiving: SharedReceiver
  retention: Retention
  leave: () => void
}

class SqliteMailbox implements MailboxDriver {
  readonly name: string
  readonly powers: MailboxPowers = {
    kind: 'sqlite',
    durable: true,
    shared: true,
    visibility: true,
    extend: true,
    delay: true,
    remembers: true,
    exactDeliveries: true,
    ordered: true,
    exactCount: true,
    purge: true,
    browse: true,
    deduplicates: true,
    maxBodyBytes: 16 * 1024 ** 2,
  }
  readonly #options: SqliteMailboxOptions
  readonly #clock: Clock
  readonly #retentionMs: number
  #opened: Opened | undefined
  #report: (count: number) => void = () => {}

  constructor(options: SqliteMailboxOptions, clock: Clock) {
    this.name = options.name
    this.#options = options
    this.#clock = clock
    this.#retentionMs = retentionMsOf(options.retentionSeconds)
  }

  onExpired(report: (count: number) => void): void {
    this.#report = report
  }

  async open(): Promise<void> {
    const file = useFile(this.#options.path, this.#clock)
    try {
      const number = await file.call('open', this.name)
      this.#opened = this.#listen(file, number)
    } catch (error) {
      await file.leave()
      throw error
    }
  }

  #listen(file: MailFile, number: number): Opened {
    const { reporter, leave: leaveReporter } = file.reporter((count) => this.#report(count))
    const retention: Retention = [this.#retentionMs, reporter]
    const line = new SharedReceiver({
      clock: this.#clock,
      take: async (slots) => {
        const whole = slots.map(Math.ceil)
        const { found, ...rest } = await file.call('take', [number, whole, retention], whole.length)
        return { deliveries: found.map((message) => this.#delivery(message)), ...rest }
      },
      release: (receipts) =>
        Promise.all(
          receipts.map((receipt) =>
            this.#nack(file, number, receipt, { delayMs: 0, failed: false, tail: false }),
          ),
        ),
      pollMs: () => pollMs * (0.75 + this.#clock.random() / 2),
    })
    const leaveWaiting = file.waiting(number).add(() => line.notify())
    const leave = (): void => (leaveWaiting(), leaveReporter())
    return { file, number, receiving: line, retention, leave }
  }

  async close(): Promise<void> {
    const opened = this.#opened
    if (!opened) return
    this.#opened = undefined
    await opened.receiving.idle()
    opened.leave()
    await opened.file.leave()
  }

  async send(message: OutgoingMessage, delayMs: number): Promise<void> {
    const { file, number, retention } = this.#use()
    const { bytes } = message
    const cost = 1 + bytes.byteLength / bytesPerCost
    await file.call(
      'send',
      [number, message.id, aboutOf(message), bytes, Math.ceil(delayMs), retention],
      cost,
    )
    file.waiting(number).notify()
  }

  async receive(ask: ReceiveRequest): Promise<Delivery[]> {
    return this.#use().receiving.receive(ask)
  }

  async acknowledge(receipt: string): Promise<boolean> {
    const { file, number } = this.#use()
    const held = heldBy(number, receipt)
    return held ? file.call('acknowledge', held) : false
  }

  async nack(receipt: string, how: { delayMs: number; failed: boolean }): Promise<boolean> {
    const { file, number } = this.#use()
    return this.#nack(file, number, receipt, { ...how, tail: true })
  }

  async #nack(
    file: MailFile,
    number: number,
    receipt: string,
    how: { delayMs: number; failed: boolean; tail: boolean },
  ): Promise<boolean> {
    const held = heldBy(number, receipt)
    if (!held) return false
    const { delayMs, failed, tail } = how
    const given = await file.call('nack', [...held, Math.ceil(delayMs), failed, tail])
    if (given) file.waiting(number).notify()
    return given
  }

  async extend(receipt: string, ms: number): Promise<boolean> {
    const { file, number } = this.#use()
    const held = heldBy(number, receipt)
    return held ? file.call('extend', [...held, Math.ceil(ms)]) : false
  }

  async browse(
    after: string | undefined,
    limit: number,
  ): Promise<{ found: Delivery[]; after?: string }> {
    const { file, number } = this.#use()
    const from = after === undefined ? 0 : Number(after)
    if (!Number.isSafeInteger(from) || from < 0)
      throw new RedriveError('INVALID_INPUT', 'after must be a cursor that browse returned')
    const page = await file.call('browse', [number, from, limit])
    const found = page.found.map((message) => ({ ...this.#delivery(message), receipt: '' }))
    const last = page.found.at(-1)
    return last && page.more ? { found, after: String(last[0]) } : { found }
  }

  async purge(): Promise<number> {
    const { file, number } = this.#use()
    return file.call('purge', [number])
  }

  async count(): Promise<number> {
    const { file, number } = this.#use()
    return file.call('count', [number])
  }

  async health(): Promise<MailboxHealth> {
    try {
      const { file, number } = this.#use()
      return await file.call('health', [number])
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      return { ok: false, checks: { path: this.#options.path }, problems: [problem] }
    }
  }

  #use(): Opened {
    if (this.#opened) return this.#opened
    throw new RedriveError('CLOSED', `the mailbox ${this.name} is not open: await open() first`)
  }

  #delivery(message: StoredMessage): Delivery {
    const [seq, deliveries, id, about, bytes, released, failures, enqueuedMs, firstMs] = message
    return {
      ...toOutgoingMessage(id, about, bytes),
      receipt: `${seq}.${deliveries}`,
      deliveries: deliveries - released,
      failures,
      enqueuedMs,
      firstReceivedMs: firstMs ?? this.#clock.now(),
    }
  }
}

/** The delivery of a receipt. Undefined: the receipt is invalid. */
function heldBy(mailbox: number, receipt: string): Held | undefined {
  const [seq, deliveries] = receipt.split('.').map(Number)
  if (!Number.isSafeInteger(seq) || !Number.isSafeInteger(deliveries)) return undefined
  return [mailbox, seq!, deliveries!]
}

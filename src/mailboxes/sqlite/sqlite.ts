import { systemClock, type Clock } from '../../clock.ts'
import { RedriveError } from '../../errors.ts'
import type {
  Ask,
  Delivery,
  Mailbox,
  MailboxDriver,
  MailboxHealth,
  MailboxPowers,
  MailboxResolver,
  Parcel,
} from '../../mailbox.ts'
import { tellExpired } from '../expired.ts'
import { mailbox } from '../mailbox.ts'
import { useFile, type MailFile } from './file.ts'
import { aboutOf, parcelOf } from '../kept-parcel.ts'
import type { Held, Kept } from './protocol.ts'
import { receiving, type Receiving } from '../receiving.ts'

export interface SqliteMailboxOptions {
  /** The file. It is made when it is not there, readable by its owner only. Any number of mailboxes may share it. */
  path: string
  name: string
  clock?: Clock
  resolver?: MailboxResolver
  /** How long a message is kept. 259,200 (3 days) unless said; 0: for ever. */
  retentionSeconds?: number
  /** Hears how many messages were removed because they were kept that long. */
  onExpired?: (count: number) => void
}

/** A mailbox in a SQLite file, for one machine and any number of its processes. */
export function sqliteMailbox(options: SqliteMailboxOptions): Mailbox {
  const { clock = systemClock, resolver } = options
  return mailbox(new SqliteMailbox(options, clock), resolver ? { clock, resolver } : { clock })
}

/** So many bytes are as much work as a message without any. */
const bytesOfWeight = 16 * 1024

/** How often others that use the file are asked for news. */
const pollMs = 100

interface Opened {
  file: MailFile
  /** The number of the mailbox. */
  number: number
  receiving: Receiving
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
  #expired = 0

  constructor(options: SqliteMailboxOptions, clock: Clock) {
    const { retentionSeconds = 259_200 } = options
    if (!(retentionSeconds >= 0 && retentionSeconds <= 3_155_760_000))
      throw new RedriveError(
        'INVALID_CONFIG',
        `retentionSeconds must be from 0 (for ever) to 3155760000 (a century), got ${String(retentionSeconds).slice(0, 40)}`,
      )
    this.name = options.name
    this.#options = options
    this.#clock = clock
    this.#retentionMs = Math.ceil(retentionSeconds * 1000)
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
    const line = receiving({
      clock: this.#clock,
      take: async (slots) => {
        const whole = slots.map(Math.ceil)
        const { found, ...rest } = await file.call('take', [number, whole], whole.length)
        return { deliveries: found.map((kept) => this.#delivery(kept)), ...rest }
      },
      giveBack: (receipts) =>
        Promise.all(
          receipts.map((receipt) =>
            this.#nack(file, number, receipt, { delayMs: 0, failed: false, tail: false }),
          ),
        ),
      pollMs: () => pollMs * (0.75 + this.#clock.random() / 2),
    })
    const leaveWaiting = file.waiting(number).add(() => line.news())
    const leaveExpired = file.onExpired(number, (count) => {
      this.#expired += count
      tellExpired(this.#options.onExpired, count)
    })
    const leave = (): void => (leaveWaiting(), leaveExpired())
    return { file, number, receiving: line, leave }
  }

  async close(): Promise<void> {
    const opened = this.#opened
    if (!opened) return
    this.#opened = undefined
    await opened.receiving.idle()
    opened.leave()
    await opened.file.leave()
  }

  async send(parcel: Parcel, delayMs: number): Promise<void> {
    const { file, number } = this.#use()
    const { bytes } = parcel
    const weight = 1 + bytes.byteLength / bytesOfWeight
    await file.call(
      'send',
      [number, parcel.id, aboutOf(parcel), Math.ceil(delayMs), this.#retentionMs],
      weight,
      bytes,
    )
    file.waiting(number).tell()
  }

  async receive(ask: Ask): Promise<Delivery[]> {
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
    if (given) file.waiting(number).tell()
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
      throw new RedriveError('INVALID_INPUT', 'after must be what browse gave for the next page')
    const page = await file.call('browse', [number, from, limit])
    const found = page.found.map((kept) => ({ ...this.#delivery(kept), receipt: '' }))
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
      const { checks, ...rest } = await file.call('health', [number])
      const kept = this.#retentionMs > 0 ? `${this.#retentionMs / 1000} s` : 'for ever'
      return { ...rest, checks: { ...checks, retention: kept, expired: String(this.#expired) } }
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      return { ok: false, checks: { path: this.#options.path }, problems: [problem] }
    }
  }

  #use(): Opened {
    if (this.#opened) return this.#opened
    throw new RedriveError('CLOSED', `the mailbox ${this.name} is not open: await open() first`)
  }

  #delivery(kept: Kept): Delivery {
    const [seq, deliveries, id, about, bytes, released, failures, enqueuedMs, firstMs] = kept
    return {
      ...parcelOf(id, about, bytes),
      receipt: `${seq}.${deliveries}`,
      deliveries: deliveries - released,
      failures,
      enqueuedMs,
      firstReceivedMs: firstMs ?? this.#clock.now(),
    }
  }
}

/** The delivery that a receipt stands for, undefined if it is none of ours. */
function heldBy(mailbox: number, receipt: string): Held | undefined {
  const [seq, deliveries] = receipt.split('.').map(Number)
  if (!Number.isSafeInteger(seq) || !Number.isSafeInteger(deliveries)) return undefined
  return [mailbox, seq!, deliveries!]
}

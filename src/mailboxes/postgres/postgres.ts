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
import { addressOf, taken, type Address } from '../../backends/postgres/address.ts'
import { inspect } from '../../backends/postgres/inspect.ts'
import { mailbox } from '../mailbox.ts'
import { SharedReceiver } from '../shared-receiver.ts'
import { retentionIn } from '../../backends/retention.ts'
import { retentionMsOf } from '../../backends/retention.ts'
import { openLink, readerOf, type Link } from './link.ts'
import { notices, type Notices } from './notices.ts'
import { prepare } from './opening.ts'
import { sending, type Sending } from './sending.ts'
import { settling, type Settling } from './settling.ts'
import * as statements from './statements.ts'
import { sweeping, type Sweeping } from './sweeping.ts'
import { deliveryOf, taker } from './taking.ts'

export interface PostgresMailboxOptions {
  /** `postgres://user@host:5432/database`. Over a network with `?sslmode=verify-full`. */
  url: string
  name: string
  /** Where the tables are; `redrive_mail` unless said. Also `?schema=` in the URL. */
  schema?: string
  /** Connections of this mailbox, 4 unless said; one more listens. Also `?poolSize=` in the URL. */
  poolSize?: number
  /** Opens also where the server's settings would break a promise. Also `?allowUnsafe=true` in the URL. */
  allowUnsafe?: boolean
  clock?: Clock
  resolver?: MailboxResolver
  /** Messages older than this are removed when the mailbox is received from. Default: 0, they are kept for ever. */
  retentionSeconds?: number
}

const optionKeys = keysOf<PostgresMailboxOptions>({
  url: true,
  name: true,
  schema: true,
  poolSize: true,
  allowUnsafe: true,
  clock: true,
  resolver: true,
  retentionSeconds: true,
})

/** A mailbox in a schema of a Postgres database, for any number of processes and machines. */
export function postgresMailbox(options: PostgresMailboxOptions): Mailbox {
  checkKeys('postgres mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  const given = withoutRetention(options)
  const { clock = systemClock, resolver, retentionSeconds = 0 } = given
  const driver = new PostgresMailbox(given, clock)
  return mailbox(driver, { clock, retentionSeconds, ...(resolver ? { resolver } : {}) })
}

/** Reads `retentionSeconds` in the URL as an option, and takes it out: `pg` must not see it. An option goes first. */
function withoutRetention(options: PostgresMailboxOptions): PostgresMailboxOptions {
  if (!URL.canParse(options.url)) return options
  const url = new URL(options.url)
  const retentionSeconds = taken(url, 'retentionSeconds')
  if (retentionSeconds === undefined) return options
  return { ...retentionIn({ retentionSeconds }), ...options, url: url.href }
}

/** The schema is not that of the letters: each is refused by the other. */
const addressDefaults = {
  schema: 'redrive_mail',
  poolSize: 4,
  leastPoolSize: 1,
  alsoKnown: ['retentionSeconds'],
}

/** How often others are asked for news when they are heard, and when they are not. */
const pollMs = { listening: 1000, deaf: 200 } as const

/** Messages that one statement purges. */
const maxPurged = 10_000

interface Opened {
  link: Link
  /** The number of the mailbox. */
  number: number
  sending: Sending
  receiving: SharedReceiver
  acknowledging: Settling<null>
  nacking: Settling<{ delayMs: number; failed: boolean; tail: boolean }>
  extending: Settling<number>
  sweeping: Sweeping
  notices: Notices
}

class PostgresMailbox implements MailboxDriver {
  readonly name: string
  readonly powers: MailboxPowers = {
    kind: 'postgres',
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
  readonly #address: Address
  readonly #clock: Clock
  readonly #retentionMs: number
  #opened: Opened | undefined
  #report: (count: number) => void = () => {}

  constructor(options: PostgresMailboxOptions, clock: Clock) {
    this.name = options.name
    this.#address = addressOf(options, addressDefaults)
    this.#clock = clock
    this.#retentionMs = retentionMsOf(options.retentionSeconds)
  }

  onExpired(report: (count: number) => void): void {
    this.#report = report
  }

  async open(): Promise<void> {
    const link = openLink(this.#address, this.#clock)
    try {
      this.#opened = this.#begin(link, await prepare(link, this.#address, this.name))
    } catch (error) {
      await link.close()
      throw error
    }
  }

  #begin(link: Link, number: number): Opened {
    const clock = this.#clock
    const retentionMs = this.#retentionMs
    const report = (count: number): void => this.#report(count)
    const sweep = sweeping({ link, mailbox: number, clock, retentionMs, report })
    const news = notices({ link, clock, mailbox: number, hear: () => line.notify() })
    const nacking: Opened['nacking'] = settling(link, number, statements.nack, [
      ({ delayMs }) => Math.ceil(delayMs),
      ({ failed }) => failed,
      ({ tail }) => tail,
    ])
    const back = { delayMs: 0, failed: false, tail: false }
    const line = new SharedReceiver({
      clock,
      take: taker(link, number, clock, retentionMs),
      release: (receipts) =>
        Promise.all(receipts.map((receipt) => nacking.call(receipt, back))).then(() => news.tell()),
      pollMs: () => {
        // Expired messages are also removed while a receiver waits.
        sweep.nudge()
        return pollMs[news.listening ? 'listening' : 'deaf'] * (0.75 + clock.random() / 2)
      },
    })
    return {
      link,
      number,
      sending: sending({ link, mailbox: number, retentionMs, report }),
      receiving: line,
      acknowledging: settling(link, number, statements.acknowledge, []),
      nacking,
      extending: settling(link, number, statements.extend, [(ms) => Math.ceil(ms)]),
      sweeping: sweep,
      notices: news,
    }
  }

  async close(): Promise<void> {
    const opened = this.#opened
    if (!opened) return
    this.#opened = undefined
    const { link, sending: sends, receiving: line, sweeping: sweep } = opened
    await line.idle()
    await Promise.all(
      [sends, sweep, opened.acknowledging, opened.extending].map((one) => one.idle()),
    )
    await opened.nacking.idle()
    await opened.notices.stop()
    await link.close()
  }

  async send(parcel: OutgoingMessage, delayMs: number): Promise<void> {
    const opened = this.#use()
    await opened.sending.call({ parcel, delayMs })
    this.#tell(opened)
  }

  async receive(ask: ReceiveRequest): Promise<Delivery[]> {
    const opened = this.#use()
    if (ask.waitMs > 0) opened.notices.listen()
    opened.sweeping.nudge()
    return opened.receiving.receive(ask)
  }

  async acknowledge(receipt: string): Promise<boolean> {
    return this.#use().acknowledging.call(receipt, null)
  }

  async nack(receipt: string, how: { delayMs: number; failed: boolean }): Promise<boolean> {
    const opened = this.#use()
    const given = await opened.nacking.call(receipt, { ...how, tail: true })
    if (given) this.#tell(opened)
    return given
  }

  async extend(receipt: string, ms: number): Promise<boolean> {
    return this.#use().extending.call(receipt, ms)
  }

  async browse(
    after: string | undefined,
    limit: number,
  ): Promise<{ found: Delivery[]; after?: string }> {
    const { link, number } = this.#use()
    const from = after === undefined ? 0 : Number(after)
    if (!Number.isSafeInteger(from) || from < 0)
      throw new RedriveError('INVALID_INPUT', 'after must be what browse gave for the next page')
    const [rows] = await link.do([[statements.browse, [number, from, limit]]])
    const found = rows!.map((row) => ({ ...deliveryOf(row), receipt: '' }))
    const last = rows!.at(-1)
    const isLast = Number(last?.at(-1) ?? 0) === found.length
    return last && !isLast ? { found, after: String(last[0]) } : { found }
  }

  async purge(): Promise<number> {
    const { link, number } = this.#use()
    const [[newest]] = (await link.do([[statements.newest, [number]]])) as [[[number | null]]]
    let purged = 0
    for (let count = maxPurged; count === maxPurged;) {
      const values = [number, newest[0] ?? 0, maxPurged]
      const [[some]] = (await link.do([[statements.purge, values]])) as [[[number]]]
      count = some[0]
      purged += count
    }
    return purged
  }

  async count(): Promise<number> {
    const { link, number } = this.#use()
    const [[row]] = (await link.do([[statements.count, [number]]])) as [[[number]]]
    return row[0]
  }

  async health(): Promise<MailboxHealth> {
    const place = { place: this.#address.place, schema: this.#address.schema }
    try {
      const { link, notices: news } = this.#use()
      const { checks, problems } = await inspect(readerOf(link))
      const all = {
        ...place,
        ...checks,
        wakeups: news.state,
        messages: String(await this.count()),
      }
      return { ok: problems.length === 0, checks: all, problems }
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      return { ok: false, checks: place, problems: [problem] }
    }
  }

  /** Whoever waits, here and elsewhere. */
  #tell({ receiving: line, notices: news }: Opened): void {
    line.notify()
    news.tell()
  }

  #use(): Opened {
    if (this.#opened) return this.#opened
    throw new RedriveError('CLOSED', `the mailbox ${this.name} is not open: await open() first`)
  }
}

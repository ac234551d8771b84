import type { Pool } from 'pg'
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
import { addressOf, takeSetting, type Address } from '../../backends/postgres/address.ts'
import { PostgresConnection } from '../../backends/postgres/connection.ts'
import { inspect } from '../../backends/postgres/inspect.ts'
import { Notifications } from '../../backends/postgres/notifications.ts'
import type { Tenant } from '../../backends/postgres/tenant.ts'
import { mailbox } from '../mailbox.ts'
import { SharedReceiver } from '../shared-receiver.ts'
import { retentionIn, retentionMsOf } from '../../backends/retention.ts'
import { prepare } from './opening.ts'
import { Sender } from './sender.ts'
import { Settler } from './settler.ts'
import * as statements from './statements.ts'
import { Sweeper } from './sweeper.ts'
import { deliveryOf, Taker } from './taker.ts'

export interface PostgresMailboxOptions {
  /**
   * `postgres://user@host:5432/database`. Over a network with `?sslmode=verify-full`. Either `url`
   * or `pool` is required.
   */
  url?: string
  /**
   * A pool of the application, which stays open when the mailbox closes. One more connection, with
   * its options, listens.
   */
  pool?: Pool
  name: string
  /** The schema of the tables. Default: `redrive_mail`. Also `?schema=` in the URL. */
  schema?: string
  /**
   * Connections of this mailbox; one more listens. Default: 4. Also `?poolSize=` in the URL. Not
   * with `pool`.
   */
  poolSize?: number
  /**
   * Opens the mailbox even if the server's settings would break a guarantee. Also
   * `?allowUnsafe=true` in the URL.
   */
  allowUnsafe?: boolean
  clock?: Clock
  resolver?: MailboxResolver
  /**
   * Messages older than this are removed when the mailbox is received from. Default: 0, messages
   * never expire.
   */
  retentionSeconds?: number
}

const optionKeys = keysOf<PostgresMailboxOptions>({
  url: true,
  pool: true,
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

/**
 * Reads `retentionSeconds` in the URL as an option, and removes it, since `pg` must not see it. An
 * option overrides it.
 */
function withoutRetention(options: PostgresMailboxOptions): PostgresMailboxOptions {
  if (options.url === undefined || !URL.canParse(options.url)) return options
  const url = new URL(options.url)
  const retentionSeconds = takeSetting(url, 'retentionSeconds')
  if (retentionSeconds === undefined) return options
  return { ...retentionIn({ retentionSeconds }), ...options, url: url.href }
}

/** Not the schema of the letters: stores and mailboxes reject each other's schema. */
const addressDefaults = {
  schema: 'redrive_mail',
  poolSize: 4,
  leastPoolSize: 1,
  alsoKnown: ['retentionSeconds'],
}

/** The poll interval of waiting receivers, with and without notifications. */
const pollMs = { listening: 1000, alone: 200 } as const

/** The maximum number of messages that one statement purges. */
const maxPurged = 10_000

const tenant: Tenant = { noun: 'mailbox', unavailable: 'MAILBOX_UNAVAILABLE' }

/**
 * A table of messages is empty one second and full the next, so the planner's statistics are often
 * stale. Plans that are fast only on an empty table are disabled: every statement finds its rows by
 * an index.
 */
const plannerSettings = ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin'].map(
  (plan) => `enable_${plan} = off`,
)

interface Opened {
  connection: PostgresConnection
  /** The number of the mailbox. */
  number: number
  sender: Sender
  receiver: SharedReceiver
  acknowledger: Settler<null>
  nacker: Settler<{ delayMs: number; failed: boolean; tail: boolean }>
  extender: Settler<number>
  sweeper: Sweeper
  notifications: Notifications
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
    const [address, clock] = [this.#address, this.#clock]
    const connection = new PostgresConnection({ address, clock, tenant, plannerSettings })
    try {
      this.#opened = this.#start(connection, await prepare(connection, this.#address, this.name))
    } catch (error) {
      await connection.close()
      throw error
    }
  }

  #start(connection: PostgresConnection, number: number): Opened {
    const clock = this.#clock
    const retentionMs = this.#retentionMs
    const report = (count: number): void => this.#report(count)
    const sweeper = new Sweeper({ connection, mailbox: number, clock, retentionMs, report })
    const notifications = new Notifications({
      connection,
      clock,
      channel: `redrive_mail_${connection.schema}`,
      topic: `${number} `,
      onNotification: () => receiver.notify(),
    })
    const nacker: Opened['nacker'] = new Settler(connection, number, statements.nack, [
      ({ delayMs }) => Math.ceil(delayMs),
      ({ failed }) => failed,
      ({ tail }) => tail,
    ])
    const taker = new Taker(connection, number, clock, retentionMs)
    const untouched = { delayMs: 0, failed: false, tail: false }
    const receiver = new SharedReceiver({
      clock,
      take: (slots) => taker.take(slots),
      release: (receipts) =>
        Promise.all(receipts.map((receipt) => nacker.settle(receipt, untouched))).then(() =>
          notifications.notify(),
        ),
      pollMs: () => {
        // Expired messages are also removed while a receiver waits.
        sweeper.nudge()
        return (
          pollMs[notifications.isListening ? 'listening' : 'alone'] * (0.75 + clock.random() / 2)
        )
      },
    })
    return {
      connection,
      number,
      sender: new Sender({ connection, mailbox: number, retentionMs, report }),
      receiver,
      acknowledger: new Settler(connection, number, statements.acknowledge, []),
      nacker,
      extender: new Settler(connection, number, statements.extend, [(ms) => Math.ceil(ms)]),
      sweeper,
      notifications,
    }
  }

  async close(): Promise<void> {
    const opened = this.#opened
    if (!opened) return
    this.#opened = undefined
    const { connection, sender, sweeper, acknowledger, extender } = opened
    await opened.receiver.idle()
    await Promise.all([sender, sweeper, acknowledger, extender].map((one) => one.idle()))
    await opened.nacker.idle()
    await opened.notifications.stop()
    await connection.close()
  }

  async send(message: OutgoingMessage, delayMs: number): Promise<void> {
    const opened = this.#use()
    await opened.sender.send(message, delayMs)
    this.#wakeReceivers(opened)
  }

  async receive(ask: ReceiveRequest): Promise<Delivery[]> {
    const opened = this.#use()
    if (ask.waitMs > 0) opened.notifications.listen()
    opened.sweeper.nudge()
    return opened.receiver.receive(ask)
  }

  async acknowledge(receipt: string): Promise<boolean> {
    return this.#use().acknowledger.settle(receipt, null)
  }

  async nack(receipt: string, how: { delayMs: number; failed: boolean }): Promise<boolean> {
    const opened = this.#use()
    const isReturned = await opened.nacker.settle(receipt, { ...how, tail: true })
    if (isReturned) this.#wakeReceivers(opened)
    return isReturned
  }

  async extend(receipt: string, ms: number): Promise<boolean> {
    return this.#use().extender.settle(receipt, ms)
  }

  async browse(
    after: string | undefined,
    limit: number,
  ): Promise<{ found: Delivery[]; after?: string }> {
    const { connection, number } = this.#use()
    const from = after === undefined ? 0 : Number(after)
    if (!Number.isSafeInteger(from) || from < 0)
      throw new RedriveError(
        'INVALID_INPUT',
        `after must be the value that browse returned, got ${JSON.stringify(after)}`,
      )
    const rows = await connection.execute(statements.browse, [number, from, limit])
    const found = rows.map((row) => ({ ...deliveryOf(row), receipt: '' }))
    const last = rows.at(-1)
    const isLast = Number(last?.at(-1) ?? 0) === found.length
    return last && !isLast ? { found, after: String(last[0]) } : { found }
  }

  async purge(): Promise<number> {
    const { connection, number } = this.#use()
    const [newest] = await connection.execute(statements.newest, [number])
    let purged = 0
    for (let count = maxPurged; count === maxPurged;) {
      const values = [number, newest![0] ?? 0, maxPurged]
      const [row] = await connection.execute(statements.purge, values)
      count = row![0] as number
      purged += count
    }
    return purged
  }

  async count(): Promise<number> {
    const { connection, number } = this.#use()
    const [row] = await connection.execute(statements.count, [number])
    return row![0] as number
  }

  async health(): Promise<MailboxHealth> {
    const place = { place: this.#address.place, schema: this.#address.schema }
    try {
      const { connection, notifications } = this.#use()
      const { checks, problems } = await inspect((sql) => connection.read(sql))
      const all = {
        ...place,
        ...checks,
        wakeups: notifications.state,
        messages: String(await this.count()),
      }
      return { ok: problems.length === 0, checks: all, problems }
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      return { ok: false, checks: place, problems: [problem] }
    }
  }

  /** Wakes waiting receivers, in this process and in others. */
  #wakeReceivers({ receiver, notifications }: Opened): void {
    receiver.notify()
    notifications.notify()
  }

  #use(): Opened {
    if (this.#opened) return this.#opened
    throw new RedriveError('CLOSED', `the mailbox ${this.name} is not open: call open() first`)
  }
}

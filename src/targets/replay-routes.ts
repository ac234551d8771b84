import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { originalIdOfLetter, replaysOfLetter } from '../letter/lineage.ts'
import { withReplayKey, type ReplaySafety } from '../letter/replay-safety.ts'
import type { Mailbox, MailboxResolver } from '../mailbox.ts'
import { openedByName } from '../mailboxes/opened-by-name.ts'
import { sendReplay, type ReplayableMessage } from '../mailboxes/replay.ts'
import type { Settings } from '../options/options.ts'
import { openMailbox } from '../connect/mailbox.ts'
import type { Handler, ReplayRoute } from '../redelivery/run.ts'
import type { ReplayOutcome } from '../letter/result.ts'
import { inSpan } from '../tracing.ts'
import { carryTrace, replaySpan } from './trace.ts'

export interface ReplayRoutesOptions extends Pick<Settings, 'mailboxes' | 'maxReplays'> {
  clock: Clock
  /** Whether letters of a queue may be published twice. */
  repairRulesFor: (queue: string) => { replay: ReplaySafety }
}

/**
 * The routes that return letters to their source. Letters of a tap or a pipeline use the route of
 * their queue's handler (`returnToSource(tap)`, `pipeline.deadLetters(dlq)`). Letters of a loop go
 * to the mailbox of their name: first among those whose loops store their dead messages here, then
 * among the option `mailboxes`.
 */
export class ReplayRoutes {
  readonly #options: ReplayRoutesOptions
  readonly #queues = new Map<string, ReplayRoute>()
  /** Mailboxes of loops, by name. Several brokers may have a mailbox of the same name. */
  readonly #sources = new Map<string, Set<Mailbox>>()
  readonly #configured: MailboxResolver

  constructor(options: ReplayRoutesOptions) {
    this.#options = options
    this.#configured = resolverFor(options)
  }

  /** Registers the handler of a queue: letters are replayed by its route, if it has one. */
  setHandler(queue: string, handler: Handler & { replay?: ReplayRoute }): void {
    if (handler.replay) this.#queues.set(queue, handler.replay)
    else this.#queues.delete(queue)
  }

  /** Registers a mailbox whose loop stores its dead messages as letters. */
  addSource(mailbox: Mailbox): void {
    const open = [...(this.#sources.get(mailbox.name) ?? [])].filter((one) => !one.closed)
    this.#sources.set(mailbox.name, new Set([...open, mailbox]))
  }

  /** Whether this process knows any route. */
  get hasAny(): boolean {
    const { mailboxes } = this.#options
    const isConfigured = isResolver(mailboxes) || Object.keys(mailboxes).length > 0
    return isConfigured || this.#queues.size > 0 || this.#sources.size > 0
  }

  /** Closes the mailboxes that this object opened. */
  async close(): Promise<void> {
    if (!isResolver(this.#options.mailboxes)) await this.#configured.close?.()
  }

  /**
   * Publishes a letter to its source, or to the mailbox `to`. Rejects with NO_ROUTE if this process
   * has no route.
   */
  publish(stored: DeadLetter, to?: string | Mailbox): Promise<ReplayOutcome> {
    return inSpan(
      () => replaySpan(stored, to),
      (span) => this.#publish(carryTrace(stored, isForeign(stored), span), to),
    )
  }

  async #publish(traced: DeadLetter, to?: string | Mailbox): Promise<ReplayOutcome> {
    const { maxReplays, repairRulesFor } = this.#options
    const letter = withReplayKey(traced, repairRulesFor(traced.queue).replay)
    if (to !== undefined) return this.#send(letter, await this.#mailboxFor(to))
    const { source, queue } = letter
    if (source.kind === 'pipeline' || isForeign(letter)) {
      const route = this.#queues.get(queue)
      if (route) return route(letter, { maxReplays })
      const how =
        source.kind === 'pipeline'
          ? `run pipeline.deadLetters(dlq) in this process, or use redrive pipeline replay`
          : `register its tap with dlq.handle(${JSON.stringify(queue)}, returnToSource(tap))`
      throw noRoute(letter, `this process has no route to ${whereOf(letter)}: ${how}`)
    }
    if (source.kind !== 'mailbox')
      throw noRoute(
        letter,
        `its source is ${source.kind === 'workflow' ? 'a workflow' : 'an operation'} without an address: use retry, which runs its handler, or name a mailbox with \`to\``,
      )
    const mailbox = await this.#find(source.mailbox)
    if (mailbox) return this.#send(letter, mailbox)
    const name = JSON.stringify(source.mailbox.slice(0, 100))
    throw noRoute(
      letter,
      `its mailbox ${name} is unknown in this process: add it to the option mailboxes, such as { ${name}: 'redis://localhost#requests' }, or name another one with \`to\``,
    )
  }

  async #send(letter: DeadLetter, mailbox: Mailbox): Promise<ReplayOutcome> {
    const { maxReplays } = this.#options
    const message = messageOf(letter)
    const { replays } = message
    if (replays >= maxReplays) return { kind: 'limit', replays, maxReplays }
    if (letter.payload.reference !== undefined)
      throw new RedriveError(
        'INVALID_INPUT',
        `letter ${letter.id} has no payload to publish, only a reference (${letter.payload.reference}): add a payload by an edit`,
      )
    const messageId = await sendReplay(mailbox, message)
    return { kind: 'published', to: `mailbox ${mailbox.name}`, messageId }
  }

  async #mailboxFor(to: string | Mailbox): Promise<Mailbox> {
    if (typeof to === 'string') {
      const found = await this.#find(to)
      if (found) return found
      throw new RedriveError(
        'NO_ROUTE',
        `mailbox ${JSON.stringify(to.slice(0, 100))} is unknown in this process: add it to the option mailboxes`,
      )
    }
    if (typeof (to as Partial<Mailbox> | null)?.send === 'function') return to
    throw new RedriveError(
      'INVALID_INPUT',
      `\`to\` must be the name of a mailbox, or a mailbox, got ${to === null ? 'null' : typeof to}`,
    )
  }

  async #find(name: string): Promise<Mailbox | undefined> {
    const open = [...(this.#sources.get(name) ?? [])].filter((one) => !one.closed)
    if (open.length > 1)
      throw new RedriveError(
        'NO_ROUTE',
        `${open.length} mailboxes named ${JSON.stringify(name.slice(0, 100))} are open in this process: pass the right one as \`to\``,
      )
    return open[0] ?? (await this.#configured.resolve(name))
  }
}

function isResolver(mailboxes: Settings['mailboxes']): mailboxes is MailboxResolver {
  return typeof mailboxes['resolve' as keyof typeof mailboxes] === 'function'
}

/** The mailboxes of the option. Those given by URL are opened on first use. */
function resolverFor({ mailboxes, clock }: ReplayRoutesOptions): MailboxResolver {
  if (isResolver(mailboxes)) return mailboxes
  const given = new Map(Object.entries(mailboxes))
  const open = (name: string): Promise<Mailbox> => {
    const url = given.get(name) as string
    // A URL without a name gets the key as its name.
    return openMailbox(url, url.includes('#') ? { clock } : { clock, name })
  }
  const opened = openedByName(open, clock)
  return {
    resolve: (name) => {
      const mailbox = given.get(name)
      return typeof mailbox === 'string' ? opened.resolve(name) : mailbox
    },
    close: () => opened.close(),
  }
}

/** For letters of a tap, `metadata.origin` is the source. */
function isForeign({ source, metadata }: DeadLetter): boolean {
  const { origin } = metadata
  return (
    source.kind === 'mailbox' &&
    typeof origin === 'object' &&
    origin !== null &&
    'contentType' in origin
  )
}

/** The letter as a message. A letter that was not a message gets its own id. */
function messageOf(letter: DeadLetter): ReplayableMessage {
  const { source, headers = {}, payload: body, failedAt: firstFailedAt } = letter
  const replays = replaysOfLetter(letter)
  const past = { headers, body, firstFailedAt, replays, originalId: originalIdOfLetter(letter) }
  if (source.kind !== 'mailbox')
    return { ...past, messageId: letter.id, sourceMailbox: letter.queue }
  const { messageId, mailbox: sourceMailbox, replyTo } = source
  return {
    ...past,
    messageId,
    sourceMailbox,
    ...(replyTo === undefined ? {} : { replyTo }),
  }
}

function whereOf({ source }: DeadLetter): string {
  if (source.kind === 'pipeline') return `node ${source.node} of pipeline ${source.cluster}`
  return source.kind === 'mailbox' ? `the source of ${source.mailbox}` : source.kind
}

function noRoute({ id }: DeadLetter, why: string): RedriveError {
  return new RedriveError('NO_ROUTE', `letter ${id} cannot be replayed: ${why}`)
}

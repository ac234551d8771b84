import { createHash } from 'node:crypto'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { Json } from '../letter/letter.ts'
import type { Store } from '../store.ts'
import type { Caller } from './caller.ts'

const kind = 'idempotency'
const keptMs = 24 * 3_600_000
/** A request that runs longer has ended with its process. It may then be sent again. */
const longestRunMs = 15 * 60_000
const sweepEveryMs = 60_000
const sweepLimit = 500

/** A response as it is kept for requests with the same key. */
export interface KeptResponse {
  status: number
  body: Json
}

interface KeptRequest {
  /** Hash of the request. */
  request: string
  startedMs: number
  /** The id of the letter that a repeatable request adds. */
  newId?: string
  /** Absent while the request runs. */
  response?: KeptResponse
}

/** A request with a key. */
export interface KeyedRequest {
  key: string
  caller: Caller
  /** True: it may run again, even while it runs, if it adds the same letter. */
  isRepeatable: boolean
  /** What makes it the same request: its method, address, body and conditions. */
  parts: readonly (string | Uint8Array)[]
}

/** How a request with a key goes on: it runs, or somebody already ran it. */
export type Begun = { kind: 'run'; run: Run } | { kind: 'done'; response: KeptResponse }

/** A request that runs now. */
interface Run {
  /** The id of the letter that it adds, if it is repeatable. */
  newId: string | undefined
  /** Keeps the response for 24 hours. */
  keep(response: KeptResponse): Promise<void>
  /** The same key may run the request again. */
  forget(): Promise<void>
}

/** Remembers requests that have an Idempotency-Key, so that each runs once. */
export class Idempotency {
  readonly #store: Pick<Store, 'records'>
  readonly #clock: Clock
  #sweptMs = 0
  #sweptTo: string | undefined

  constructor(store: Pick<Store, 'records'>, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /**
   * Starts a request, or returns the response of the same request. Rejects while that one runs,
   * unless it is repeatable, and if another request has the key.
   */
  async begin({ key, caller, isRepeatable, parts }: KeyedRequest): Promise<Begun> {
    checkKey(key)
    await this.#sweep()
    const { records } = this.#store
    const id = hashOf([caller.name, key])
    const request = hashOf([...parts, ...rightsOf(caller)])
    const now = this.#clock.now()
    const newId = isRepeatable ? { newId: this.#clock.id() } : {}
    const value: KeptRequest = { request, startedMs: now, ...newId }
    // Most keys are new: one write, without a read before it.
    if ((await records.put(kind, id, value as unknown as Json, 0)) === 'written')
      return { kind: 'run', run: this.#runOf(id, value, 1) }
    const found = await records.get(kind, id)
    if (!found) throw inProgress()
    const kept = found.value as unknown as KeptRequest
    if (!isOver(kept, now)) {
      if (kept.request !== request)
        throw new RedriveError(
          'KEY_REUSED',
          'another request was sent with this Idempotency-Key: use a new key for a new request',
        )
      if (kept.response) return { kind: 'done', response: kept.response }
      if (kept.newId !== undefined)
        return { kind: 'run', run: this.#runOf(id, kept, found.version) }
      throw inProgress()
    }
    if ((await records.put(kind, id, value as unknown as Json, found.version)) === 'conflict')
      throw inProgress()
    return { kind: 'run', run: this.#runOf(id, value, found.version + 1) }
  }

  #runOf(id: string, value: KeptRequest, version: number): Run {
    const { records } = this.#store
    const { newId } = value
    return {
      newId,
      keep: async (response) => {
        await records.put(kind, id, { ...value, response } as unknown as Json, version)
      },
      forget: async () => {
        // The letter may have been added all the same: the next run must add it with the same id.
        if (newId === undefined) await records.remove(kind, id)
      },
    }
  }

  /** Removes some of the records that are over, at most once a minute. */
  async #sweep(): Promise<void> {
    const now = this.#clock.now()
    if (now - this.#sweptMs < sweepEveryMs) return
    this.#sweptMs = now
    const { records } = this.#store
    const page = await records.list(kind, {
      limit: sweepLimit,
      ...(this.#sweptTo === undefined ? {} : { after: this.#sweptTo }),
    })
    this.#sweptTo = page.length < sweepLimit ? undefined : page.at(-1)!.id
    for (const { id, value } of page)
      if (now - (value as unknown as KeptRequest).startedMs >= keptMs)
        await records.remove(kind, id)
  }
}

function isOver({ startedMs, response, newId }: KeptRequest, now: number): boolean {
  const canWait = response !== undefined || newId !== undefined
  return now - startedMs >= (canWait ? keptMs : longestRunMs)
}

/** With other rights, the same request may have another response. */
function rightsOf({ permissions, scope }: Caller): string[] {
  return [[...permissions].sort().join(), JSON.stringify([scope.queues, scope.tenants])]
}

function checkKey(key: string): void {
  if (!/^[\x20-\x7e]{1,200}$/.test(key))
    throw new RedriveError(
      'INVALID_INPUT',
      'the Idempotency-Key must have 1 to 200 printable ASCII characters',
    )
}

function inProgress(): RedriveError {
  return new RedriveError(
    'KEY_IN_USE',
    'a request with this Idempotency-Key runs now: send it again later for its response',
  )
}

/** The length of each part is hashed as well, so that parts cannot be shifted. */
function hashOf(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part)
  return hash.digest('hex')
}

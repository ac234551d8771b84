// Bulk actions and their letters, stored as records so that every store supports them.
import { RedriveError } from '../errors.ts'
import { isLetterId } from '../letter/letter-id.ts'
import type { Json } from '../letter/letter.ts'
import type { Timestamp } from '../letter/time.ts'
import { readSealed } from '../letter/sealed.ts'
import type { DocumentRecord, Store } from '../store.ts'
import type { BulkAction, PlannedLetter } from '../letter/bulk-action.ts'
import type { Ramp } from './ramp.ts'

const kinds = {
  action: 'bulk',
  /** A record for each action that a worker has to look at. */
  active: 'bulk-active',
  /** The letters of actions, in chunks. */
  letters: 'bulk-letters',
} as const

/** Letters per record. */
export const chunkLetters = 500
const indexDigits = 6
/** Chunks that are read at once. */
const chunksPerPage = 20
const actionsPerPage = 100
/** Attempts of a change when the action keeps changing concurrently. */
const maxAttempts = 20

/** An action as it is stored. */
export interface StoredAction extends BulkAction {
  ramp?: Ramp
  /** The worker that runs the action. Another one takes over when the record stops changing. */
  worker?: string
}

export interface ActionRecord {
  action: StoredAction
  version: number
}

export interface Chunk {
  index: number
  version: number
  letters: PlannedLetter[]
}

/** Reads and writes actions, their letters, and the list of active actions. */
export class BulkRecords {
  readonly #store: Pick<Store, 'records'>

  constructor(store: Pick<Store, 'records'>) {
    this.#store = store
  }

  get #records(): Store['records'] {
    return this.#store.records
  }

  /** Rejects with ACTION_NOT_FOUND if there is no such action. */
  async load(id: string): Promise<ActionRecord> {
    const isId = typeof id === 'string' && isLetterId(id)
    const record = isId ? await this.#records.get(kinds.action, id) : undefined
    if (record) return actionOf(record)
    throw new RedriveError(
      'ACTION_NOT_FOUND',
      `there is no bulk action ${JSON.stringify(String(id).slice(0, 100))}: check the id, or list the actions`,
    )
  }

  /** Actions, the newest first. */
  async list(limit: number, matches: (action: BulkAction) => boolean): Promise<BulkAction[]> {
    const all: BulkAction[] = []
    for await (const action of this.actions()) if (matches(action)) all.push(toShown(action))
    return all.toReversed().slice(0, limit)
  }

  /** The actions with these ids. Unknown ids are left out. */
  async byIds(ids: readonly string[]): Promise<BulkAction[]> {
    if (ids.length === 0) return []
    const records = await this.#records.list(kinds.action, { ids })
    // An action that this process cannot decrypt is left out.
    return records
      .filter(({ value }) => !readSealed(value))
      .map((one) => toShown(actionOf(one).action))
  }

  /** All actions, the oldest first. */
  async *actions(): AsyncGenerator<StoredAction> {
    for (let after: string | undefined; ;) {
      const page = { limit: actionsPerPage, ...(after === undefined ? {} : { after }) }
      const records = await this.#records.list(kinds.action, page)
      // An action that this process cannot decrypt is left out.
      for (const record of records) if (!readSealed(record.value)) yield actionOf(record).action
      if (records.length < actionsPerPage) return
      after = records.at(-1)!.id
    }
  }

  /** The actions that have letters, and when their first letters were written. */
  async *chunkOwners(): AsyncGenerator<{ actionId: string; updatedAt: Timestamp }> {
    for (let after: string | undefined; ;) {
      const page = { limit: 1, ...(after === undefined ? {} : { after }) }
      const [record] = await this.#records.list(kinds.letters, page)
      if (!record) return
      const actionId = record.id.slice(0, -indexDigits - 1)
      yield { actionId, updatedAt: record.updatedAt }
      // The highest id of a chunk of this action.
      after = `${actionId}/${'9'.repeat(indexDigits)}`
    }
  }

  /** Removes the letters of an action, then the action itself. */
  async remove(id: string): Promise<void> {
    await this.deactivate(id)
    for await (const { index } of this.chunks(id))
      await this.#records.remove(kinds.letters, chunkId(id, index))
    await this.#records.remove(kinds.action, id)
  }

  async create(action: StoredAction): Promise<void> {
    await this.#records.put(kinds.action, action.id, toJson(action), 0)
  }

  /** Writes the action if it still has this version. Returns the new version. */
  async replace(action: StoredAction, version: number): Promise<number | undefined> {
    const result = await this.#records.put(kinds.action, action.id, toJson(action), version)
    return result === 'written' ? version + 1 : undefined
  }

  /** Changes the action. `change` is called again when the action has changed meanwhile. */
  async update(id: string, change: (action: StoredAction) => StoredAction): Promise<BulkAction> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const { action, version } = await this.load(id)
      const next = change(action)
      if (next === action || (await this.replace(next, version)) !== undefined) return toShown(next)
    }
    throw new RedriveError(
      'VERSION_CONFLICT',
      `bulk action ${id} kept changing during the call: try again`,
    )
  }

  async activate(id: string): Promise<void> {
    await this.#records.put(kinds.active, id, {})
  }

  async deactivate(id: string): Promise<void> {
    await this.#records.remove(kinds.active, id)
  }

  async activeIds(): Promise<string[]> {
    return (await this.#records.list(kinds.active)).map(({ id }) => id)
  }

  async createChunk(actionId: string, index: number, letters: PlannedLetter[]): Promise<void> {
    await this.#records.put(kinds.letters, chunkId(actionId, index), toJson(letters))
  }

  async chunk(actionId: string, index: number): Promise<Chunk> {
    const record = await this.#records.get(kinds.letters, chunkId(actionId, index))
    if (record) return chunkOf(record)
    throw new RedriveError(
      'ACTION_NOT_FOUND',
      `letters ${index * chunkLetters} and following of bulk action ${actionId} are gone: plan it again`,
    )
  }

  /** Writes the letters if nobody else has. */
  async replaceChunk(actionId: string, { index, version, letters }: Chunk): Promise<boolean> {
    const id = chunkId(actionId, index)
    const result = await this.#records.put(kinds.letters, id, toJson(letters), version)
    return result === 'written'
  }

  /** The chunks of an action from this index on. */
  async *chunks(actionId: string, from = 0): AsyncGenerator<Chunk> {
    for (let next = from; ;) {
      const records = await this.#records.list(kinds.letters, {
        prefix: `${actionId}/`,
        after: next === 0 ? `${actionId}/` : chunkId(actionId, next - 1),
        limit: chunksPerPage,
      })
      for (const record of records) yield chunkOf(record)
      if (records.length < chunksPerPage) return
      next = chunkOf(records.at(-1)!).index + 1
    }
  }
}

function chunkId(actionId: string, index: number): string {
  return `${actionId}/${String(index).padStart(indexDigits, '0')}`
}

function actionOf({ value, version }: DocumentRecord): ActionRecord {
  return { action: value as unknown as StoredAction, version }
}

function chunkOf({ id, value, version }: DocumentRecord): Chunk {
  const index = Number(id.slice(-indexDigits))
  return { index, version, letters: value as unknown as PlannedLetter[] }
}

function toJson(value: object): Json {
  return value as unknown as Json
}

/** The action without the fields that only workers need. */
export function toShown(stored: StoredAction): BulkAction {
  const { ramp: _, worker: __, ...action } = stored
  return action
}

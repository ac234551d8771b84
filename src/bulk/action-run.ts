import { isDeepStrictEqual } from 'node:util'
import { toTimestamp } from '../letter/time.ts'
import { act, loadLetters, type ActContext } from './act.ts'
import {
  addProgress,
  countOutcomes,
  noProgress,
  type BulkProgress,
  type PlannedLetter,
} from '../letter/bulk-action.ts'
import { inSpan, type SpanDescription } from '../tracing.ts'
import { decideStep } from './decide.ts'
import { outcomeByHistory, outcomeOf } from './outcome.ts'
import { toShown, type ActionRecord, type BulkRecords } from './records.ts'
import type { Chunk, StoredAction } from './records.ts'

export interface ActionRunOptions extends ActContext {
  records: BulkRecords
  /** The longest pause between two steps. */
  pollMs: number
}

/** Chunks that one step acts on or reads outcomes of, so that a pause is noticed soon. */
const chunksPerStep = 4
/** The time between two reads of outcomes, while the action acts on further letters. */
const actingMs = 500
/** The pause between two reads of outcomes, while outcomes arrive. */
const shortPauseMs = 50

const removedBeforeRun = { outcome: 'skipped', error: 'it was removed before its run' } as const

/** Another worker has taken over, or a person has changed the action. */
export class ActionChangedError extends Error {}

/** Runs one action in this process, step by step. Progress is derived from the stored letters. */
export class ActionRun {
  readonly #options: ActionRunOptions
  #action: StoredAction
  /** The action as it is stored. */
  #written: StoredAction
  #version: number
  /** Progress of each chunk. */
  readonly #chunks: BulkProgress[]
  /** The chunk whose outcomes are read next. */
  #nextToRead = 0
  #pauseMs = shortPauseMs
  /** Whether the last step acted on letters. */
  #hasActed = false
  /** When outcomes were read. */
  #readMs = -Infinity
  /** Letters that the rate limit allows, as of `#tokensMs`. */
  #tokens = 1
  #tokensMs: number

  private constructor(options: ActionRunOptions, record: ActionRecord, chunks: BulkProgress[]) {
    this.#options = options
    this.#action = record.action
    this.#written = record.action
    this.#version = record.version
    this.#chunks = chunks
    this.#tokensMs = options.clock.mono()
  }

  static async open(options: ActionRunOptions, record: ActionRecord): Promise<ActionRun> {
    const chunks: BulkProgress[] = []
    for await (const chunk of options.records.chunks(record.action.id))
      chunks.push(countOutcomes(chunk.letters))
    return new ActionRun(options, record, chunks)
  }

  /** The action as it is stored now. */
  update({ action, version }: ActionRecord): void {
    this.#action = action
    this.#written = action
    this.#version = version
  }

  get progress(): BulkProgress {
    return this.#chunks.reduce(addProgress, noProgress)
  }

  /** One step. Resolves with the pause until the next one. */
  async step(): Promise<number> {
    const { clock, pollMs } = this.#options
    const hasNews = await this.#readOutcomesIfDue()
    const { state, limits, ramp } = this.#action
    const progress = this.progress
    if (state !== 'running') {
      await this.#write({})
      return this.#pauseAfter(hasNews)
    }
    const tokens = this.#refillTokens()
    this.#hasActed = false
    const step = decideStep({ limits, progress, ramp, nowMs: clock.now(), tokens })
    const at = toTimestamp(clock.now())
    switch (step.kind) {
      case 'finish':
        await this.#write({ state: 'finished', endedAt: at })
        return 0
      case 'stop':
        await this.#write({ state: 'stopped', stopReason: step.why })
        return pollMs
      case 'wait':
        await this.#write({})
        return Math.min(step.ms, this.#pauseAfter(hasNews))
      case 'act':
        // The ramp is stored first: after a crash the step is not larger than it was.
        if (step.ramp) await this.#write({ ramp: step.ramp })
        this.#hasActed = true
        return inSpan(
          () => stepSpan(this.#action, step.letters),
          () => this.#actAndWrite(step.letters),
        )
    }
  }

  /** Acts on letters. A letter that could not be published is tried again after a pause. */
  async #actAndWrite(letters: number): Promise<number> {
    const problem = await this.#actOn(letters)
    const { problem: _, ...action } = this.#action
    this.#action = problem === undefined ? action : { ...action, problem }
    await this.#write({})
    return problem === undefined ? 0 : this.#options.pollMs
  }

  #pauseAfter(hasNews: boolean): number {
    const { pollMs } = this.#options
    this.#pauseMs = hasNews ? shortPauseMs : Math.min(2 * this.#pauseMs, pollMs)
    return this.#pauseMs
  }

  #refillTokens(): number {
    const { rate } = this.#action.limits
    if (rate === undefined) return Infinity
    const nowMs = this.#options.clock.mono()
    const grown = this.#tokens + ((nowMs - this.#tokensMs) * rate) / 1000
    this.#tokens = Math.min(grown, Math.max(1, rate))
    this.#tokensMs = nowMs
    return this.#tokens
  }

  /**
   * Writes the action with its progress. If a person has paused or cancelled it meanwhile, that
   * stays. Rejects if another worker has taken over.
   */
  async #write(set: Partial<StoredAction>): Promise<void> {
    const { records, hub } = this.#options
    for (let change = set; ;) {
      const action: StoredAction = { ...this.#action, ...change, progress: this.progress }
      const version = await records.replace(action, this.#version)
      if (version !== undefined) {
        const isNews = !isDeepStrictEqual(action, this.#written)
        this.update({ action, version })
        if (isNews) hub.emit({ type: 'bulk', action: toShown(action) })
        return
      }
      const record = await records.load(action.id)
      if (record.action.worker !== action.worker) throw new ActionChangedError()
      this.update(record)
      if (record.action.state !== 'running') change = {}
    }
  }

  /** Acts on the next letters. Resolves with the reason if some could not be published now. */
  async #actOn(letters: number): Promise<string | undefined> {
    const { concurrency } = this.#action.limits
    let left = letters
    const parts: Promise<string | undefined>[] = []
    const isReplay = this.#action.action === 'replay'
    for (const [index, { pending }] of this.#chunks.entries()) {
      if (pending === 0) continue
      const size = Math.min(left, pending, isReplay ? concurrency : Infinity)
      parts.push(this.#actOnChunk(index, size))
      left -= size
      if (left === 0 || isReplay || parts.length === chunksPerStep) break
    }
    return (await Promise.all(parts)).find((problem) => problem !== undefined)
  }

  async #actOnChunk(index: number, size: number): Promise<string | undefined> {
    const { records } = this.#options
    let chunk = await records.chunk(this.#action.id, index)
    let next = chunk.letters.filter(({ outcome }) => outcome === undefined).slice(0, size)
    if (this.#action.action === 'replay') {
      // Stored first: after a crash, a letter that was perhaps published is known.
      next = next.map((letter) => ({ ...letter, sends: (letter.sends ?? 0) + 1 }))
      chunk = await this.#writeLetters(chunk, next)
    }
    const acted = await act(this.#options, this.#action, next)
    await this.#writeLetters(chunk, acted)
    if (this.#action.limits.rate !== undefined) this.#tokens -= next.length
    return acted.find(({ outcome }) => outcome === undefined)?.error
  }

  /** Replaces letters of a chunk. */
  async #writeLetters(chunk: Chunk, changed: readonly PlannedLetter[]): Promise<Chunk> {
    const byId = new Map(changed.map((letter) => [letter.id, letter]))
    const letters = chunk.letters.map((letter) => byId.get(letter.id) ?? letter)
    const isWritten = await this.#options.records.replaceChunk(this.#action.id, {
      ...chunk,
      letters,
    })
    if (!isWritten) throw new ActionChangedError()
    this.#chunks[chunk.index] = countOutcomes(letters)
    return { ...chunk, letters, version: chunk.version + 1 }
  }

  /** Reading outcomes costs as much as acting: it is done rarely while there is more to act on. */
  async #readOutcomesIfDue(): Promise<boolean> {
    const { clock } = this.#options
    if (this.#hasActed && clock.mono() - this.#readMs < actingMs) return false
    const hasNews = await this.#readOutcomes()
    this.#readMs = clock.mono()
    return hasNews
  }

  /** Reads outcomes of retried letters, of some chunks in turn. True if there were any. */
  async #readOutcomes(): Promise<boolean> {
    const count = this.#chunks.length
    const indexes: number[] = []
    for (let offset = 0; offset < count && indexes.length < chunksPerStep; offset += 1) {
      const index = (this.#nextToRead + offset) % count
      if (this.#chunks[index]!.waiting > 0) indexes.push(index)
    }
    this.#nextToRead = (indexes.at(-1) ?? -1) + 1
    const news = await Promise.all(indexes.map((index) => this.#readOutcomesOf(index)))
    return news.some(Boolean)
  }

  async #readOutcomesOf(index: number): Promise<boolean> {
    const { records, store } = this.#options
    const chunk = await records.chunk(this.#action.id, index)
    const waiting = chunk.letters.filter(({ outcome }) => outcome === 'waiting')
    const ids = waiting.map(({ id }) => id)
    const { items } = await store.find({ ids, limit: ids.length })
    const found = new Map(items.map((letter) => [letter.id, letter]))
    const known: PlannedLetter[] = []
    const unclear: PlannedLetter[] = []
    for (const planned of waiting) {
      const letter = found.get(planned.id)
      const outcome = letter && outcomeOf(planned, letter)
      if (!outcome) unclear.push(planned)
      else if (outcome.outcome !== 'waiting') known.push({ ...planned, ...outcome })
    }
    const loaded = new Map((await loadLetters(store, unclear)).map((letter) => [letter.id, letter]))
    for (const planned of unclear) {
      const letter = loaded.get(planned.id)
      const outcome = letter ? outcomeByHistory(this.#action.id, letter) : removedBeforeRun
      if (outcome.outcome !== 'waiting') known.push({ ...planned, ...outcome })
    }
    if (known.length > 0) await this.#writeLetters(chunk, known)
    return known.length > 0
  }
}

/** The span of one step of an action: what it does to some letters. */
function stepSpan({ id, action }: StoredAction, letters: number): SpanDescription {
  return {
    name: `bulk ${action}`,
    kind: 'internal',
    attributes: { 'redrive.bulk.id': id, 'redrive.bulk.action': action, 'redrive.items': letters },
  }
}

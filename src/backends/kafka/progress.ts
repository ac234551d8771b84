/** The state of a record: the number of its deliveries, or `done`. */
export const done = -1

/** Default size limit of offset metadata (offset.metadata.max.bytes of the broker). */
const maxMetadataBytes = 4096
/** Not used by `room`, so that records can be started one at a time when there is no room. */
const spareBytes = 256
/** No consumer has so many open records: metadata that contains more is not ours. */
const maxOpen = 1_000_000
/** Bytes for one record that differs from its neighbours: its state and a comma. */
const recordBytes = 2
/** Bytes for a gap: `x*`, its length and a comma. */
const gapBytes = 19

interface Known {
  state: number
  /** Started here and not done: its state can soon differ from that of its neighbours. */
  isOpen: boolean
}

/** Adjacent offsets with the same state. */
interface Run extends Known {
  count: number
}

/**
 * The progress of a group in one partition. Kafka stores one offset per partition: all records
 * before it are done. Records are done in any order here, so the metadata of the committed offset
 * contains the state of the records after it: which of them are done, and how often the others
 * were delivered. The next owner of the partition reads it, so a record that is done is not
 * delivered again after a crash, and deliveries that ended the process are counted.
 */
export class Progress {
  /** All records before this offset are done. */
  #base: number
  /** Nothing is known of records from this offset on. */
  #end: number
  /** The records between base and end in order. Offsets that are missing have no record. */
  readonly #known: Map<number, Known>
  /** Records from this offset on are gaps or in state 0. */
  #touchedEnd: number

  /** From a committed offset, -1 if there is none. Records before `logStart` are deleted. */
  constructor(offset: number, metadata: string, logStart = 0) {
    const { known, end } = parseMetadata(metadata, Math.max(offset, 0))
    this.#end = this.#touchedEnd = end
    this.#known = known
    this.#base = Math.max(offset, 0)
    this.#advance()
    this.moveTo(logStart)
  }

  get base(): number {
    return this.#base
  }

  /** How many offsets after the base are known. */
  get reach(): number {
    return this.#end - this.#base
  }

  /** How many offsets after the base are done. */
  get doneAhead(): number {
    let count = this.reach
    for (const { state } of this.#known.values()) if (state !== done) count -= 1
    return count
  }

  /**
   * How many more records can be started, in order, so that the metadata stays within its limit
   * whichever of them is done first. At least 1 if no record is open.
   */
  get room(): number {
    let left = maxMetadataBytes - spareBytes
    let isIdle = true
    let waiting = 0
    for (const run of this.#runs(true)) {
      left -= longestFormat(run)
      if (run.isOpen) isIdle = false
      else if (run.state === 0) waiting += run.count
    }
    let count = Math.max(0, Math.min(waiting, Math.floor(left / recordBytes)))
    left -= count * recordBytes
    let next = this.#touchedEnd
    for (const [offset, { state }] of this.#known) {
      if (offset < this.#touchedEnd || state === done) continue
      if (left < recordBytes) break
      left -= recordBytes + (offset > next ? gapBytes : 0)
      next = offset + 1
      if (left >= 0) count += 1
    }
    return Math.max(count, isIdle ? 1 : 0)
  }

  stateOf(offset: number): number {
    if (offset < this.#base) return done
    return offset < this.#end ? (this.#known.get(offset)?.state ?? done) : 0
  }

  /** Sets the state of a record. Does nothing for an offset without a record. */
  set(offset: number, state: number): void {
    while (this.#end <= offset) this.#known.set(this.#end++, { state: 0, isOpen: false })
    const known = this.#known.get(offset)
    if (!known || known.state === state) return
    known.isOpen = state > known.state
    known.state = state
    if (state !== 0) this.#touchedEnd = Math.max(this.#touchedEnd, offset + 1)
    if (offset === this.#base) this.#advance()
  }

  /** There are no records from one offset up to the other: compacted, deleted or control ones. */
  skip(from: number, to: number): void {
    if (from <= this.#base) return this.moveTo(to)
    if (from > this.#end) this.set(from - 1, 0)
    if (from < this.#end)
      for (const offset of this.#known.keys())
        if (offset >= from && offset < to) this.#known.delete(offset)
    this.#end = Math.max(this.#end, to)
  }

  /** All records before the offset are done. */
  moveTo(offset: number): void {
    if (offset <= this.#base) return
    for (const known of this.#known.keys())
      if (known < offset) this.#known.delete(known)
      else break
    this.#end = Math.max(this.#end, offset)
    this.#advance()
  }

  /** Runs of equal states, such as `x*500,2,0*3,1`: `x` is done. Omits runs beyond the limit. */
  toMetadata(): string {
    let metadata = ''
    const runs = this.#runs(false)
    if (runs.at(-1)?.state === 0) runs.pop()
    for (const run of runs) {
      const next = `${metadata === '' ? '' : ','}${formatRun(run)}`
      if (metadata.length + next.length > maxMetadataBytes) break
      metadata += next
    }
    return metadata
  }

  #advance(): void {
    this.#base = this.#end
    for (const [offset, { state }] of this.#known) {
      if (state !== done) {
        this.#base = offset
        return
      }
      this.#known.delete(offset)
    }
  }

  /** The states from the base to the last touched record, with open records apart or not. */
  #runs(separateOpen: boolean): Run[] {
    const runs: Run[] = []
    const add = (count: number, state: number, isOpen: boolean): void => {
      const last = runs.at(-1)
      if (last && last.state === state && last.isOpen === isOpen) last.count += count
      else if (count > 0) runs.push({ count, state, isOpen })
    }
    let next = this.#base
    for (const [offset, { state, isOpen }] of this.#known) {
      if (offset >= this.#touchedEnd) break
      add(offset - next, done, false)
      add(1, state, separateOpen && isOpen)
      next = offset + 1
    }
    add(Math.max(0, this.#touchedEnd - next), done, false)
    return runs
  }
}

function formatRun({ count, state }: Run): string {
  return `${state === done ? 'x' : state}${count > 1 ? `*${count}` : ''}`
}

/** The most bytes that a run can need later, whichever of its open records are done. */
function longestFormat(run: Run): number {
  return run.isOpen ? run.count * (String(run.state).length + 1) : formatRun(run).length + 1
}

const runPattern = /^(x|\d{1,9})(?:\*(\d{1,16}))?$/

/** Metadata that another program wrote counts as empty. */
function parseMetadata(metadata: string, base: number): { known: Map<number, Known>; end: number } {
  const known = new Map<number, Known>()
  let end = base
  for (const run of metadata === '' ? [] : metadata.split(',')) {
    const [, text = '', count = '1'] = runPattern.exec(run) ?? []
    const to = end + Number(count)
    const state = text === 'x' ? done : Number(text)
    const isOurs = text !== '' && Number.isSafeInteger(to) && (state === done || +count <= maxOpen)
    if (!isOurs || known.size > maxOpen) return { known: new Map(), end: base }
    if (state !== done) for (; end < to; end++) known.set(end, { state, isOpen: false })
    end = to
  }
  return { known, end }
}

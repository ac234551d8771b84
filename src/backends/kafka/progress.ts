/** What became of a record: delivered so often, 0 for not yet, or done with. */
export const done = -1

/** How much the broker keeps beside an offset unless it was told otherwise (offset.metadata.max.bytes). */
const maxNoteBytes = 4096
/** What is left free of it: a record may be begun alone, or a few at a time, when there is no room for more. */
const spareBytes = 256

/** So many records that are not done are more than anybody holds: what says so was not written by us. */
const maxOpen = 1_000_000

/** A record that is there. */
interface Known {
  readonly offset: number
  mark: number
  /** Begun here, and not done: it may soon be known to be something else than its neighbours. */
  isOpen: boolean
}

/** Records in a row of which the same is known. */
interface Run {
  from: number
  to: number
  mark: number
  isOpen: boolean
}

/**
 * How far one partition is. Kafka knows one number: all before it is done. Here, records are done in any order, so what is known of those
 * behind that number stands in a note, which the broker keeps with the number: which are done already, and how often the others were
 * delivered. Whoever takes the partition over reads it. So a record that is done does not come again after a crash, and one that kills
 * its process is counted.
 */
export class Progress {
  /** From what the broker keeps, which knows -1 before anybody has said, in a partition that begins there. */
  static of({ offset, note }: { offset: number; note: string }, first: number): Progress {
    // What is known of records counts from the offset that it was kept with.
    const progress = new Progress(Math.max(offset, 0), note)
    progress.moveTo(first)
    return progress
  }

  /** All before it is done. */
  #base: number
  /** Nothing is known from there on. */
  #end: number
  /** What is known of the records from the base on, by offset, behind as many as were passed. What is not among them is not there: done. */
  #known: Known[]
  #passed = 0
  /** Behind the last of which anything but a gap is known. */
  #touched: number

  constructor(base: number, note: string) {
    const { known, end } = noted(note, base)
    this.#base = base
    this.#end = end
    this.#known = known
    this.#touched = end
    this.#advance()
  }

  get base(): number {
    return this.#base
  }

  /** How far what is known reaches beyond the base. */
  get reach(): number {
    return this.#end - this.#base
  }

  /** How many behind the base are done. */
  get doneAhead(): number {
    let count = this.reach
    for (let at = this.#passed; at < this.#known.length; at++)
      if (this.#known[at]!.mark !== done) count -= 1
    return count
  }

  /**
   * How many more can be begun, in their order, so that the note has room for all that is known, whichever of them is done first. If none
   * is begun, one can.
   */
  get room(): number {
    let left = maxNoteBytes - spareBytes
    let isIdle = true
    let waiting = 0
    for (const run of this.#runs(true)) {
      left -= mostBytes(run)
      if (run.isOpen) isIdle = false
      else if (run.mark === 0) waiting += run.to - run.from
    }
    let count = Math.max(0, Math.min(waiting, Math.floor(left / leastBytes)))
    left -= count * leastBytes
    // Nothing behind is known but gaps.
    let next = this.#touched
    for (let at = this.#indexOf(next); at < this.#known.length && left >= leastBytes; at++) {
      const { offset, mark } = this.#known[at]!
      if (mark === done) continue
      if (offset > next) left -= gapBytes
      next = offset + 1
      left -= leastBytes
      if (left >= 0) count += 1
    }
    return Math.max(count, isIdle ? 1 : 0)
  }

  markOf(offset: number): number {
    if (offset < this.#base) return done
    if (offset >= this.#end) return 0
    const known = this.#known[this.#indexOf(offset)]
    return known?.offset === offset ? known.mark : done
  }

  mark(offset: number, mark: number): void {
    if (offset < this.#base) return
    while (this.#end <= offset) this.#known.push({ offset: this.#end++, mark: 0, isOpen: false })
    const known = this.#at(offset)
    if (mark === known.mark) return
    known.isOpen = mark > known.mark
    known.mark = mark
    if (mark !== 0) this.#touched = Math.max(this.#touched, offset + 1)
    if (mark === done && offset === this.#base) this.#advance()
  }

  /** There is nothing from one offset up to the other: it was compacted, deleted, or is of the broker's own. */
  skip(from: number, to: number): void {
    if (from <= this.#base) return this.moveTo(to)
    if (from > this.#end) this.mark(from - 1, 0)
    for (let at = this.#indexOf(from); at < this.#known.length; at++) {
      const known = this.#known[at]!
      if (known.offset >= to) break
      known.mark = done
      known.isOpen = false
    }
    this.#end = Math.max(this.#end, to)
  }

  /** All before it is done, whatever was known. */
  moveTo(offset: number): void {
    if (offset <= this.#base) return
    this.#passed = this.#indexOf(offset)
    this.#end = Math.max(this.#end, offset)
    this.#advance()
  }

  /** As runs of the same mark: `x` is done, `x*500,2,0*3,1`. What is behind the last that fits may come again. */
  note(): string {
    let note = ''
    const runs = this.#runs(false)
    if (runs.at(-1)?.mark === 0) runs.pop()
    for (const run of runs) {
      const text = `${note === '' ? '' : ','}${textOf(run)}`
      if (note.length + text.length > maxNoteBytes) break
      note += text
    }
    return note
  }

  /** Of the record with this offset, or of the first behind it. */
  #indexOf(offset: number): number {
    const all = this.#known
    let low = this.#passed
    let high = all.length
    // Mostly there are no gaps.
    const near = low + offset - (all[low]?.offset ?? 0)
    if (all[near]?.offset === offset) return near
    while (low < high) {
      const middle = (low + high) >>> 1
      if (all[middle]!.offset < offset) low = middle + 1
      else high = middle
    }
    return low
  }

  /** The record with this offset. It may turn out that there is one in a gap. */
  #at(offset: number): Known {
    const at = this.#indexOf(offset)
    const known = this.#known[at]
    if (known?.offset === offset) return known
    const fresh = { offset, mark: done, isOpen: false }
    this.#known.splice(at, 0, fresh)
    return fresh
  }

  /** Moves over what is done. Those before are thrown away many at a time, since each time costs as much as what stays. */
  #advance(): void {
    const all = this.#known
    let at = this.#passed
    while (all[at]?.mark === done) at += 1
    this.#base = all[at]?.offset ?? this.#end
    this.#passed = at
    if (at * 2 < all.length) return
    all.splice(0, at)
    this.#passed = 0
  }

  /** What is known from the base on, without holes, up to the last that was touched. Those that are begun by themselves, or as others. */
  #runs(byOpen: boolean): Run[] {
    const runs: Run[] = []
    let last: Run | undefined
    const add = (from: number, to: number, mark: number, isOpen: boolean): void => {
      if (last && last.mark === mark && last.isOpen === isOpen) last.to = to
      else runs.push((last = { from, to, mark, isOpen }))
    }
    let next = this.#base
    for (let at = this.#passed; at < this.#known.length; at++) {
      const { offset, mark, isOpen } = this.#known[at]!
      if (offset >= this.#touched) break
      if (offset > next) add(next, offset, done, false)
      next = offset + 1
      add(offset, next, mark, byOpen && isOpen)
    }
    if (next < this.#touched) add(next, this.#touched, done, false)
    return runs
  }
}

function textOf({ from, to, mark }: Run): string {
  return `${mark === done ? 'x' : mark}${to - from > 1 ? `*${to - from}` : ''}`
}

/** What a record needs that is not like its neighbours: its mark and a comma. */
const leastBytes = 2
/** What a gap needs: `x*`, how long it is, and a comma. */
const gapBytes = 19

/** What a run needs in the note at most, whatever becomes of those that are begun. */
function mostBytes(run: Run): number {
  return run.isOpen ? (run.to - run.from) * (String(run.mark).length + 1) : textOf(run).length + 1
}

const runText = /^(x|\d{1,9})(?:\*(\d{1,16}))?$/

/** Notes of others, who may write there what they like, say nothing. */
function noted(note: string, base: number): { known: Known[]; end: number } {
  const known: Known[] = []
  let end = base
  for (const text of note === '' ? [] : note.split(',')) {
    const found = runText.exec(text)
    const to = end + Number(found?.[2] ?? 1)
    const mark = found?.[1] === 'x' ? done : Number(found?.[1])
    const isOurs = found && Number.isSafeInteger(to) && (mark === done || to - end <= maxOpen)
    if (!isOurs || known.length > maxOpen) return { known: [], end: base }
    if (mark !== done)
      for (let offset = end; offset < to; offset++) known.push({ offset, mark, isOpen: false })
    end = to
  }
  return { known, end }
}

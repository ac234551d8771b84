/** What became of a record: delivered so often, 0 for not yet, or done with. */
export const done = -1

/** How much the broker keeps beside an offset unless it was told otherwise (offset.metadata.max.bytes). */
const maxNoteBytes = 4096
/** How far ahead of the offset a note may reach; what lies further was not written by us. */
const maxReach = 1_000_000

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
  /** What is known of those from there on, behind as many as were passed and are not yet thrown away. */
  #marks: number[]
  #passed = 0
  /** How far beyond the base anything but 0 is known. */
  #touched: number

  constructor(base: number, note: string) {
    this.#base = base
    this.#marks = marksIn(note)
    this.#touched = this.#marks.length
    this.#advance()
  }

  get base(): number {
    return this.#base
  }

  /** How far what is known reaches beyond the base. */
  get reach(): number {
    return this.#marks.length - this.#passed
  }

  /** How many behind the base are done. */
  get doneAhead(): number {
    let count = 0
    for (let at = this.#passed; at < this.#marks.length; at++)
      if (this.#marks[at] === done) count += 1
    return count
  }

  markOf(offset: number): number {
    return offset < this.#base ? done : (this.#marks[offset - this.#base + this.#passed] ?? 0)
  }

  mark(offset: number, mark: number): void {
    const ahead = offset - this.#base
    if (ahead < 0) return
    while (this.reach < ahead) this.#marks.push(0)
    this.#marks[ahead + this.#passed] = mark
    if (mark !== 0 && ahead >= this.#touched) this.#touched = ahead + 1
    if (mark === done && ahead === 0) this.#advance()
  }

  /** There is nothing from one offset up to the other: it was compacted, deleted, or is of the broker's own. */
  skip(from: number, to: number): void {
    if (from <= this.#base) return this.moveTo(to)
    for (let offset = from; offset < to; offset++) this.mark(offset, done)
  }

  /** All before it is done, whatever was known. */
  moveTo(offset: number): void {
    if (offset <= this.#base) return
    this.#pass(offset - this.#base)
    this.#advance()
  }

  /** As runs of the same mark: `x` is done, `x*500,2,0*3,1`. What is behind the last that fits may come again. */
  note(): string {
    let note = ''
    const end = this.#passed + this.#touched
    for (let at = this.#passed; at < end;) {
      const mark = this.#marks[at]!
      const start = at
      while (at < end && this.#marks[at] === mark) at++
      if (mark === 0 && at === end) break
      const run = `${note === '' ? '' : ','}${mark === done ? 'x' : mark}${at - start > 1 ? `*${at - start}` : ''}`
      if (note.length + run.length > maxNoteBytes) break
      note += run
    }
    return note
  }

  #advance(): void {
    let at = this.#passed
    while (this.#marks[at] === done) at++
    if (at > this.#passed) this.#pass(at - this.#passed)
  }

  /** Those before are thrown away many at a time, since each time costs as much as what stays. */
  #pass(count: number): void {
    this.#base += count
    this.#touched = Math.max(0, this.#touched - count)
    this.#passed = Math.min(this.#passed + count, this.#marks.length)
    if (this.#passed < this.reach) return
    this.#marks.splice(0, this.#passed)
    this.#passed = 0
  }
}

const run = /^(x|\d{1,9})(?:\*(\d{1,7}))?$/

/** Notes of others, who may write there what they like, say nothing. */
function marksIn(note: string): number[] {
  const marks: number[] = []
  for (const text of note === '' ? [] : note.split(',')) {
    const found = run.exec(text)
    const count = Number(found?.[2] ?? 1)
    if (!found || marks.length + count > maxReach) return []
    const mark = found[1] === 'x' ? done : Number(found[1])
    for (let n = 0; n < count; n++) marks.push(mark)
  }
  return marks
}

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
  /** All before it is done. */
  #base: number
  /** What is known of those from there on. */
  #marks: number[]

  constructor(base: number, note: string) {
    this.#base = base
    this.#marks = marksIn(note)
    this.#advance()
  }

  get base(): number {
    return this.#base
  }

  /** How far what is known reaches beyond the base. */
  get reach(): number {
    return this.#marks.length
  }

  /** How many behind the base are done. */
  get doneAhead(): number {
    return this.#marks.reduce((sum, mark) => sum + Number(mark === done), 0)
  }

  markOf(offset: number): number {
    return offset < this.#base ? done : (this.#marks[offset - this.#base] ?? 0)
  }

  mark(offset: number, mark: number): void {
    if (offset < this.#base) return
    while (this.#marks.length < offset - this.#base) this.#marks.push(0)
    this.#marks[offset - this.#base] = mark
    if (mark === done) this.#advance()
  }

  /** There is nothing from one offset up to the other: it was compacted, deleted, or is of the broker's own. */
  skip(from: number, to: number): void {
    if (from <= this.#base) return this.moveTo(to)
    for (let offset = from; offset < to; offset++) this.mark(offset, done)
  }

  /** All before it is done, whatever was known. */
  moveTo(offset: number): void {
    if (offset <= this.#base) return
    this.#marks.splice(0, offset - this.#base)
    this.#base = offset
    this.#advance()
  }

  /** As runs of the same mark: `x` is done, `x*500,2,0*3,1`. What is behind the last that fits may come again. */
  note(): string {
    let note = ''
    for (let at = 0; at < this.#marks.length;) {
      const mark = this.#marks[at]!
      const start = at
      while (at < this.#marks.length && this.#marks[at] === mark) at++
      if (mark === 0 && at === this.#marks.length) break
      const run = `${note === '' ? '' : ','}${mark === done ? 'x' : mark}${at - start > 1 ? `*${at - start}` : ''}`
      if (note.length + run.length > maxNoteBytes) break
      note += run
    }
    return note
  }

  #advance(): void {
    let count = 0
    while (this.#marks[count] === done) count++
    if (count === 0) return
    this.#marks.splice(0, count)
    this.#base += count
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

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Timestamp } from '../../letter/time.ts'
import { segmentFile } from './folder.ts'
import { lockFile, removeCursor, takeLeftovers, type Segment } from './leftovers.ts'
import { takeLock, type Lock } from './lock.ts'

/** The segments of a folder that are ours, in the order in which they are to be drained, and the locks that make them ours. */
export class Row {
  readonly #folder: string
  readonly #segments: Segment[] = []
  readonly #locks = new Map<string, Lock>()
  /** Owners of journals that stay, since a part of them cannot be read. */
  readonly #staying = new Set<string>()
  #unreadable = 0
  /** What this process writes to, while it has something to write. */
  #own: { owner: string; written: number } | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  get first(): Segment | undefined {
    return this.#segments[0]
  }

  get letters(): number {
    return this.#segments.reduce((sum, { letters }) => sum + letters, 0)
  }

  get bytes(): number {
    return this.#segments.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  get oldestAt(): Timestamp | undefined {
    return this.#segments.find(({ letters }) => letters > 0)?.oldestAt
  }

  get empty(): boolean {
    return this.#segments.length === 0
  }

  /** Segments that could not be read: left for good, or to be tried again. */
  get unreadable(): number {
    return this.#unreadable + this.#segments.filter(({ failures }) => failures > 0).length
  }

  /** Takes over what nobody holds. Answers what of it nobody here can read. */
  async takeOver(): Promise<{ path: string; error: unknown }[]> {
    const leftovers = await takeLeftovers(this.#folder)
    for (const { owner, lock } of leftovers) this.#locks.set(owner, lock)
    for (const { owner, segments, unreadable } of leftovers) {
      this.#segments.push(...segments)
      if (unreadable.length > 0) this.#staying.add(owner)
      this.#unreadable += unreadable.length
      if (segments.length === 0) await this.#retire(owner)
    }
    return leftovers.flatMap(({ unreadable }) => unreadable)
  }

  /**
   * A segment that is still to be made. A journal has a name that nobody had before, and its lock is taken before
   * there is anything to find: so nobody else is ever after the same file.
   */
  next(id: () => string): Segment {
    this.#own ??= this.#claim(id())
    const { owner } = this.#own
    const number = ++this.#own.written
    const path = join(this.#folder, segmentFile({ owner, number }))
    return { owner, number, path, bytes: 0, from: 0, letters: 0, failures: 0 }
  }

  #claim(owner: string): { owner: string; written: number } {
    const lock = takeLock(lockFile(this.#folder, owner))
    if (!lock) throw new Error(`${owner} is locked already`)
    this.#locks.set(owner, lock)
    return { owner, written: 0 }
  }

  push(segment: Segment): void {
    this.#segments.push(segment)
  }

  /** Takes a segment away that holds nothing any more. */
  async drop(segment: Segment): Promise<void> {
    await rm(segment.path, { force: true })
    this.#takeOut(segment)
    await this.tidy(segment.owner)
  }

  /** Leaves a segment where it is, out of the row: it must not stop the others. */
  leave(segment: Segment): void {
    this.#staying.add(segment.owner)
    this.#unreadable += 1
    this.#takeOut(segment)
  }

  /** One that is out already is none of the others. */
  #takeOut(segment: Segment): void {
    const at = this.#segments.indexOf(segment)
    if (at !== -1) this.#segments.splice(at, 1)
  }

  /** A journal that has no segments goes. The next letter begins a new one, under a new name. */
  async tidy(owner = this.#own?.owner): Promise<void> {
    const over = !this.#segments.some((segment) => segment.owner === owner)
    if (owner !== undefined && over) await this.#retire(owner)
  }

  async #retire(owner: string): Promise<void> {
    if (this.#own?.owner === owner) this.#own = undefined
    if (this.#staying.has(owner)) return
    await removeCursor(this.#folder, owner)
    this.#locks.get(owner)?.remove()
    this.#locks.delete(owner)
  }

  /** Lets go of everything, and leaves it for the next one. */
  release(): void {
    for (const lock of this.#locks.values()) lock.release()
    this.#locks.clear()
  }
}

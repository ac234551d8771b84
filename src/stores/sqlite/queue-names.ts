import type { Database } from '../../backends/sqlite/database.ts'

/** The numbers that queues have in the file. They never change, so they are cached. */
export class QueueNames {
  readonly #db: Database
  readonly #numbers = new Map<string, number>()
  readonly #names = new Map<number, string>()

  constructor(db: Database) {
    this.#db = db
  }

  /** The number of a queue. Undefined: no letter ever had this queue. */
  find(name: string): number | undefined {
    const known = this.#numbers.get(name)
    if (known !== undefined) return known
    const row = this.#db.get('SELECT id FROM queues WHERE name = ?', name)
    return row && this.#cache(row[0] as number, name)
  }

  /** The number of a queue. A new queue gets one. */
  number(name: string): number {
    const insert = (): number => this.#db.insert('INSERT INTO queues (name) VALUES (?)', name)
    return this.find(name) ?? this.#cache(insert(), name)
  }

  name(queue: number): string {
    const known = this.#names.get(queue)
    if (known !== undefined) return known
    const row = this.#db.get('SELECT name FROM queues WHERE id = ?', queue)
    if (!row) return `queue ${queue}`
    this.#cache(queue, row[0] as string)
    return row[0] as string
  }

  forget(): void {
    this.#numbers.clear()
    this.#names.clear()
  }

  #cache(queue: number, name: string): number {
    this.#numbers.set(name, queue)
    this.#names.set(queue, name)
    return queue
  }
}

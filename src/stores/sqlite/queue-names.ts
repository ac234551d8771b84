import type { Database } from '../../backends/sqlite/database.ts'

/** Queues have numbers in the file. Both ways are remembered; neither ever changes. */
export interface QueueNames {
  /** The number of a queue, undefined when no letter ever had this queue. */
  find(name: string): number | undefined
  /** The number of a queue, which gets one if it has none. */
  number(name: string): number
  name(queue: number): string
  forget(): void
}

export function queueNames(db: Database): QueueNames {
  const numbers = new Map<string, number>()
  const names = new Map<number, string>()
  const remember = (queue: number, name: string): void => {
    numbers.set(name, queue)
    names.set(queue, name)
  }
  const find = (name: string): number | undefined => {
    const known = numbers.get(name)
    if (known !== undefined) return known
    const row = db.get('SELECT id FROM queues WHERE name = ?', name)
    if (row) remember(row[0] as number, name)
    return row?.[0] as number | undefined
  }
  return {
    find,
    number(name) {
      const known = find(name)
      if (known !== undefined) return known
      const queue = db.insert('INSERT INTO queues (name) VALUES (?)', name)
      remember(queue, name)
      return queue
    },
    name(queue) {
      const known = names.get(queue)
      if (known !== undefined) return known
      const row = db.get('SELECT name FROM queues WHERE id = ?', queue)
      if (row) remember(queue, row[0] as string)
      return row ? (row[0] as string) : `queue ${queue}`
    },
    forget() {
      numbers.clear()
      names.clear()
    },
  }
}

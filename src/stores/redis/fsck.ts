import { toText, type Reply, type RedisConnection } from '../../backends/redis/connection.ts'
import type { DriftReport } from '../../store.ts'
import { scripts } from './scripts.ts'

/** Letters or index entries that one script checks. */
const step = 200

/** How often counting is repeated while letters move. */
const maxRecounts = 3

const maxExamples = 20

/**
 * Zsets of letters, by the beginning of their names. Lanes come first, since they decide which
 * letters are claimable.
 */
const zsets = /^(?:[aisdwgtnofk]:|[xy]$)/

/**
 * Compares letters with indexes and counts, in bounded steps, while the store is in use. Each step
 * sees a letter and its index entries at the same time; the counts are compared only if no letter
 * moved while they were read.
 */
export async function checkDrift(
  connection: RedisConnection,
  tag: string,
  repair: boolean,
): Promise<DriftReport> {
  const check = new DriftCheck(connection, tag, repair)
  return check.run()
}

class DriftCheck {
  readonly #connection: RedisConnection
  readonly #tag: string
  readonly #repair: '0' | '1'
  readonly #examples: string[] = []
  #unreadable = 0
  #missing = 0
  #strays = 0

  constructor(connection: RedisConnection, tag: string, repair: boolean) {
    this.#connection = connection
    this.#tag = tag
    this.#repair = repair ? '1' : '0'
  }

  async run(): Promise<DriftReport> {
    const letters = await this.#letters('lists')
    const keys = [...(await this.#keys())].sort(lanesFirst)
    for (const key of keys) await this.#entries(key)
    await this.#letters('due')
    await this.#parts()
    const counts = await this.#counts()
    const repaired = this.#repair === '1' && counts !== undefined
    const found = { unreadable: this.#unreadable, missing: this.#missing, strays: this.#strays }
    return { letters, ...found, counts, examples: this.#examples, repaired }
  }

  #tell(example: string): void {
    if (this.#examples.length < maxExamples) this.#examples.push(example)
  }

  /** Key names after the tag, one step of SCAN at a time. A name may come twice. */
  async *#scan(pattern: string): AsyncGenerator<string[]> {
    const match = `${escapeGlob(this.#tag)}:${pattern}`
    let cursor = '0'
    do {
      const asked = ['SCAN', cursor, 'MATCH', match, 'COUNT', '1000'] as const
      const [next, keys] = (await this.#connection.send(...asked)) as [Buffer, Buffer[]]
      cursor = toText(next)
      yield keys.map((key) => toText(key).slice(this.#tag.length + 1))
    } while (cursor !== '0')
  }

  async #letters(what: 'lists' | 'due'): Promise<number> {
    let looked = 0
    for await (const names of this.#scan('l:*'))
      for (let at = 0; at < names.length; at += step) {
        const ids = names.slice(at, at + step).map((name) => name.slice(2))
        looked += ids.length
        const reply = await this.#connection.run(scripts.checkLetters, [what, this.#repair, ...ids])
        const [unreadable, missing] = reply as [Buffer[], Buffer[]]
        if (what === 'lists') this.#unreadable += unreadable.length
        if (what === 'lists')
          for (const id of unreadable) this.#tell(`letter ${toText(id)} cannot be read`)
        this.#missing += missing.length / 2
        for (let n = 0; n < missing.length; n += 2)
          this.#tell(
            `letter ${toText(missing[n])} is not where it should be in ${toText(missing[n + 1])}`,
          )
      }
    return looked
  }

  async #keys(): Promise<Set<string>> {
    const keys = new Set<string>()
    for await (const names of this.#scan('*'))
      for (const name of names) if (zsets.test(name)) keys.add(name)
    return keys
  }

  /**
   * From the end to the start, so that removed entries do not shift those that are still to be
   * checked.
   */
  async #entries(key: string): Promise<void> {
    const size = Number(await this.#connection.send('ZCARD', `${this.#tag}:${key}`))
    for (let end = size; end > 0; end -= step) {
      const range = [String(Math.max(0, end - step)), String(end - 1)]
      const reply = await this.#connection.run(scripts.checkEntries, [key, ...range, this.#repair])
      const strays = reply as Buffer[]
      this.#strays += strays.length
      for (const stray of strays) this.#tell(`${key} has ${toText(stray)}, which is no such letter`)
    }
  }

  /** Waits, bodies and other fields of letters that no longer exist. */
  async #parts(): Promise<void> {
    for await (const names of this.#scan('[pbm]:*')) {
      if (names.length === 0) continue
      const found = await this.#connection.run(scripts.checkParts, [this.#repair, ...names])
      this.#strays += Number(found)
    }
  }

  async #counts(): Promise<number | undefined> {
    for (let tries = 0; tries < maxRecounts; tries++) {
      const moves = await this.#moves()
      const wrong = await this.#wrongCounts()
      if ((await this.#moves()) !== moves) continue
      for (const [name, field, n] of wrong)
        this.#tell(`${name} says something else than ${n} for ${field}`)
      if (this.#repair === '0' || wrong.length === 0) return wrong.length
      const set = await this.#connection.run(scripts.setCounts, [moves, ...wrong.flat()])
      if (set === 1) return wrong.length
    }
    return undefined
  }

  async #moves(): Promise<string> {
    const moves = await this.#connection.send('HGET', `${this.#tag}:meta`, 'moves')
    return moves === null ? '0' : toText(moves)
  }

  async #wrongCounts(): Promise<[name: string, field: string, n: string][]> {
    const expected = await this.#recounted()
    const wrong: [string, string, string][] = []
    for (const [name, fields] of expected) {
      const kept = (await this.#connection.send('HGETALL', `${this.#tag}:${name}`)) as Buffer[]
      for (let at = 0; at < kept.length; at += 2) {
        const field = toText(kept[at])
        const n = fields.get(field) ?? 0
        fields.delete(field)
        if (String(n) !== toText(kept[at + 1])) wrong.push([name, field, String(n)])
      }
      for (const [field, n] of fields) wrong.push([name, field, String(n)])
    }
    return wrong
  }

  /** Reads the indexes of queues and states: every letter is in one of them. */
  async #recounted(): Promise<Map<string, Map<string, number>>> {
    const sums = new Map(
      ['cells', 'groups', 'tags', 'states'].map((name) => [name, new Map<string, number>()]),
    )
    for (const key of await this.#keys()) {
      if (!key.startsWith('i:')) continue
      for (let from = '-', read = step; read === step;) {
        const reply = await this.#connection.run(scripts.recount, [key, from, String(step)])
        const [last, count, counted] = reply as [Buffer, number, Reply[]]
        read = count
        from = `(${toText(last)}`
        for (let at = 0; at < counted.length; at += 3) {
          const fields = sums.get(toText(counted[at]))!
          const field = toText(counted[at + 1])
          fields.set(field, (fields.get(field) ?? 0) + Number(counted[at + 2]))
        }
      }
    }
    return sums
  }
}

function lanesFirst(a: string, b: string): number {
  return Number(b.startsWith('a:')) - Number(a.startsWith('a:'))
}

/** Escapes a name for a glob pattern. */
function escapeGlob(name: string): string {
  return name.replaceAll(/[*?[\]\\^]/g, String.raw`\$&`)
}

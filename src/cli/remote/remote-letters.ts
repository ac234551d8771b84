import type { Client } from '../../api/client.ts'
import { states, type LetterSummary, type DeadLetter } from '../../letter/letter.ts'
import { maxLimit, type LetterFilter, type LetterQuery, type Page } from '../../letter/query.ts'
import { readPages } from '../pages.ts'
import type { LetterReader, QueueCounts } from '../queue-access.ts'
import { isNotFound } from './problem-code.ts'
import { toLetter } from './letter-view.ts'
import { exportLines, letterStart } from './export-lines.ts'

/** The letters of a server, as the token may see them. */
export class RemoteLetters implements LetterReader {
  readonly isLocal = false
  readonly #client: Client
  readonly #reveal: { reveal?: true }

  /** `reveal`: also what redaction hides, if the token may see it. */
  constructor(client: Client, reveal = false) {
    this.#client = client
    this.#reveal = reveal ? { reveal } : {}
  }

  async get(id: string): Promise<DeadLetter | undefined> {
    try {
      return toLetter(await this.#client.getLetter({ id, ...this.#reveal }))
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  async getExact(id: string): Promise<DeadLetter | undefined> {
    const { readLetter } = await import('../../transfer/lines/line.ts')
    for await (const line of exportLines(this.#client, { ids: [id], ...this.#reveal }))
      if (line.startsWith(letterStart)) return readLetter(Buffer.from(line)).letter
    return undefined
  }

  async find(query: LetterQuery): Promise<Page<LetterSummary>> {
    const { payload: _, ...rest } = query
    return this.#client.listLetters(rest)
  }

  async count(filter: LetterFilter): Promise<number | undefined> {
    const { queue, state = states.filter((one) => one !== 'archived'), ...rest } = filter
    if (Object.keys(rest).length > 0) return undefined
    const queues = queue === undefined ? undefined : [queue].flat()
    return (await this.countQueues())
      .filter((one) => queues?.includes(one.queue) ?? true)
      .reduce((sum, one) => [state].flat().reduce((all, name) => all + one[name], sum), 0)
  }

  async countQueues(): Promise<QueueCounts[]> {
    const all: QueueCounts[] = []
    for await (const queues of readPages((from) =>
      this.#client.listQueues({ limit: maxLimit, ...from }),
    ))
      for (const { queue, states: counts } of queues)
        if (Object.values(counts).some((count) => count > 0)) all.push({ queue, ...counts })
    return all
  }
}

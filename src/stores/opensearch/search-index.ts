import type { ClientOptions } from '@opensearch-project/opensearch'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { SearchOptions } from '../../store.ts'
import { addressOf, type Address } from '../../backends/opensearch/address.ts'
import { textFieldsOf } from './document.ts'
import { fieldsOf } from './fields.ts'
import { buildTextQuery } from './full-text.ts'
import { indexOf, letterFields, openIndices } from './mapping.ts'
import { oldFormatQuery } from './migrate.ts'
import { DocumentIndex, type Hit, type Stamped } from './document-index.ts'
import { faultOf, type Fault } from '../../backends/opensearch/errors.ts'
import { OpensearchConnection } from '../../backends/opensearch/connection.ts'

export interface SearchIndexOptions {
  url: string
  prefix?: string
  replicas?: number
  /**
   * An alias for your own queries on letters. False: none. Default: `mahavishnu_dlq`, the index of
   * the workflow design, so that its queries work unchanged.
   */
  alias?: string | false
  clock?: Clock
  client?: ClientOptions
}

const knownOptions = keysOf<SearchIndexOptions>({
  url: true,
  prefix: true,
  replicas: true,
  alias: true,
  clock: true,
  client: true,
})

/** A full-text index of the letters of another store, from which it can be rebuilt. */
export interface SearchIndex {
  /** The name of the index, under which the progress of the comparison is stored. */
  readonly name: string
  open(): Promise<void>
  close(): Promise<void>
  /**
   * Replaces older versions of letters; newer ones stay. Idempotent. Returns the ids of rejected
   * letters.
   */
  feed(letters: readonly DeadLetter[]): Promise<string[]>
  /** Removes letters. */
  drop(ids: readonly string[]): Promise<void>
  /**
   * The version of each letter in the index, for ids after `after` and up to `last`; without
   * `last`, all that follow. Version 0: fed by an older version of Redrive.
   */
  versions(after: string | undefined, last: string | undefined): Promise<Map<string, number>>
  /** Ids of letters with these words, best first. */
  search(text: string, options?: SearchOptions): Promise<string[]>
}

interface IndexedLetter extends Stamped {
  version: number
}

/** Maximum length of one bulk request. */
const maxChars = 8 * 2 ** 20
const pageSize = 1000

export function openSearchIndex(options: SearchIndexOptions): SearchIndex {
  checkKeys('options of openSearchIndex', options, knownOptions, { code: 'INVALID_CONFIG' })
  return new LetterIndex(options)
}

class LetterIndex implements SearchIndex {
  readonly name: string
  readonly #address: Address
  readonly #connection: OpensearchConnection
  readonly #documents: DocumentIndex<IndexedLetter>
  #opening: Promise<void> | undefined

  constructor(options: SearchIndexOptions) {
    const { url, client, clock = systemClock } = options
    this.#address = addressOf(url, options)
    this.#connection = new OpensearchConnection(this.#address, clock, client)
    this.name = indexOf(this.#address.prefix, 'search')
    this.#documents = new DocumentIndex(this.#connection, this.#address.node, this.name, clock)
  }

  /** Documents of an older format stay until they are fed again: see `versions`. */
  async open(): Promise<void> {
    const oldIndices = await openIndices(this.#connection, this.#address, { search: letterFields })
    for (const { markMigrated } of oldIndices) await markMigrated()
  }

  /**
   * Opens the index before the first search. The feeder opens the index in the background, so a
   * search may come first.
   */
  #openOnce(): Promise<void> {
    this.#opening ??= this.open().catch((error: unknown) => {
      this.#opening = undefined
      throw error
    })
    return this.#opening
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  async feed(letters: readonly DeadLetter[]): Promise<string[]> {
    const rejected: string[] = []
    let lines = ''
    for (const letter of letters) {
      const { id, version } = letter
      const action = { index: { _id: id, version, version_type: 'external_gte' } }
      const document = { ...fieldsOf(letter, []), ...textFieldsOf(letter) }
      const line = `${JSON.stringify(action)}\n${JSON.stringify(document)}\n`
      if (lines.length + line.length > maxChars) {
        rejected.push(...(await this.#send(lines)))
        lines = ''
      }
      lines += line
    }
    rejected.push(...(await this.#send(lines)))
    return rejected
  }

  async drop(ids: readonly string[]): Promise<void> {
    await this.#send(ids.map((_id) => `${JSON.stringify({ delete: { _id } })}\n`).join(''))
  }

  async versions(
    after: string | undefined,
    last: string | undefined,
  ): Promise<Map<string, number>> {
    await this.#documents.refresh()
    const versions = new Map<string, number>()
    const current = { exists: { field: 'letter_id' } }
    for await (const { id, source } of this.#walk('letter_id', current, after, last))
      versions.set(id, source.version)
    // No letter has version 0, so a comparison feeds or removes these documents.
    for await (const { id } of this.#walk('task_id', oldFormatQuery, after, last))
      versions.set(id, 0)
    return versions
  }

  /** Yields documents in the order of `field`, which has the id of the letter. */
  async *#walk(
    field: string,
    query: object,
    after: string | undefined,
    last: string | undefined,
  ): AsyncGenerator<Hit<IndexedLetter>> {
    const upTo = last === undefined ? [] : [{ range: { [field]: { lte: last } } }]
    const search = {
      query: { bool: { filter: [query, ...upTo] } },
      sort: [{ [field]: 'asc' }],
      size: pageSize,
      _source: ['version'],
    }
    const start = after === undefined ? undefined : [after]
    for await (const hits of this.#documents.pages(search, start)) yield* hits
  }

  async search(text: string, options: SearchOptions = {}): Promise<string[]> {
    const query = buildTextQuery(text, options)
    await this.#openOnce()
    const hits = await this.#documents.search({ ...query, _source: false })
    return hits.map(({ id }) => id)
  }

  /**
   * Sends a bulk request. A newer version in the index, or a letter that is already removed, counts
   * as written. Returns the ids of rejected letters.
   */
  async #send(lines: string): Promise<string[]> {
    if (lines === '') return []
    const { body } = await this.#connection.write<{
      items: Record<string, { _id: string; status: number; error?: Fault }>[]
    }>(this.name, lines)
    const rejected: string[] = []
    for (const { _id: id, status, error } of body.items.flatMap((item) => Object.values(item))) {
      if (status < 300 || status === 409 || (status === 404 && !error)) continue
      const rejection = faultOf(status, error, this.#address.node)
      if (rejection.code !== 'INVALID_INPUT') throw rejection
      rejected.push(id)
    }
    return rejected
  }
}

import { RedriveError } from '../../errors.ts'
import type { Address } from '../../backends/opensearch/address.ts'
import type { OpensearchConnection } from '../../backends/opensearch/connection.ts'

/**
 * The format version of our documents. A newer version may store them in a way that this one would
 * damage. In form 1, `task_id` was the id of the letter and `error_category` our category.
 */
export const formVersion = 2

/** Longer strings cannot be searched as a whole: the limit of a term is 32,766 bytes. */
const longestTerm = 8191

const keyword = { type: 'keyword', ignore_above: longestTerm }
/** Searchable by its own name, and as `.keyword`, which many tools use. */
const word = { ...keyword, fields: { keyword } }
const text = { type: 'text', fields: { keyword } }
/** A date for people, and the string itself for comparisons. */
const moment = { type: 'date', ignore_malformed: true, fields: { iso: keyword } }
const long = { type: 'long' }
/** Stored, but not indexed. */
const stored = { type: 'object', enabled: false }

/**
 * The search fields of letters. The first fifteen have the names of the workflow design, for its
 * queries.
 */
export const letterFields = {
  task_id: { ...keyword, fields: { keyword, text: { type: 'text' } } },
  task: stored,
  repos: keyword,
  error: text,
  failed_at: moment,
  retry_count: long,
  max_retries: long,
  retry_policy: word,
  next_retry_at: moment,
  status: word,
  metadata: stored,
  error_category: word,
  last_error: text,
  total_attempts: long,
  updated_at: moment,
  letter_id: keyword,
  category: word,
  severity: word,
  source_kind: word,
  source_id: word,
  metadata_terms: keyword,
  queue: word,
  priority: word,
  reason: word,
  fingerprint: word,
  tags: word,
  lane: keyword,
  lane_key: keyword,
  tenant: keyword,
  error_name: text,
  error_code: word,
  stack: { type: 'text' },
  payload_text: { type: 'text' },
  mentions: { ...keyword, ignore_above: 10_922 },
  dead_lettered_at: moment,
  settled_at: moment,
  expires_at: moment,
  due_ms: long,
  claim_score: long,
  due_key: keyword,
  settled_key: keyword,
  waits_for: keyword,
  version: long,
  draft_ms: long,
} as const

const letters = {
  ...letterFields,
  head: stored,
  history: stored,
  payload: { type: 'binary' },
  original: { type: 'binary' },
  sums: stored,
  damage: stored,
  stamp: stored,
}

const records = {
  kind: keyword,
  id: keyword,
  value: stored,
  version: long,
  updated_at: stored,
  stamp: stored,
}

const books = { kind: keyword, name: keyword }

/** Our indices by their contents. Fields that are not named here are stored, but never indexed. */
const indices = { letters, records, books }

export type IndexName = keyof typeof indices

export const indexOf = (prefix: string, name: string): string => `${prefix}-${name}`

/** The indices of a store. */
export const indicesOf = (prefix: string): string[] =>
  Object.keys(indices).map((name) => indexOf(prefix, name))

/** The alias for writes to an index. It is deleted with the index. */
const doorOf = (index: string): string => `${index}-writes`
/** No other index, such as one restored under another name, can take its place. */
const doorway = { is_write_index: true }

/** The indices in which letters are searched, which also have the alias. */
const searched = new Set(['letters', 'search'])

/** An index of an older form, and the function to call when its documents are migrated. */
export interface OldIndex {
  name: string
  done: () => Promise<void>
}

/**
 * Creates missing indices, adds new fields, and rejects unsafe settings. Safe from several
 * processes at once. Returns the indices with documents of an older form.
 */
export async function openIndices(
  connection: OpensearchConnection,
  address: Address,
  wanted: Record<string, object> = indices,
): Promise<OldIndex[]> {
  await checkServer(connection, address)
  const names = Object.keys(wanted).map((name) => indexOf(address.prefix, name))
  const there = await factsOf(connection, names)
  for (const [name, properties] of Object.entries(wanted)) {
    const index = indexOf(address.prefix, name)
    if (!there.has(index)) await makeIndex(connection, address, index, properties)
  }
  // New indices are included: another process may have been faster, and may be another version.
  const all = there.size === names.length ? there : await factsOf(connection, names)
  const old: OldIndex[] = []
  for (const [name, properties] of Object.entries(wanted)) {
    const index = indexOf(address.prefix, name)
    const facts = all.get(index)
    if (!facts) continue
    const problem = problemOf(index, facts)
    if (problem !== undefined) throw unsafe(problem)
    connection.writeAliases.set(index, await openDoor(connection, index, facts))
    if (formOf(facts) < formVersion) {
      await putMapping(connection, index, { properties })
      const done = (): Promise<void> =>
        putMapping(connection, index, { _meta: { redrive: formVersion } })
      old.push({ name, done })
    }
    if (searched.has(name)) await nameAlias(connection, index, facts, address.alias)
  }
  return old
}

function formOf({ mappings: { _meta: meta } }: IndexFacts): number {
  return meta?.redrive ?? 0
}

async function putMapping(
  connection: OpensearchConnection,
  index: string,
  body: object,
): Promise<void> {
  await connection.request({ method: 'PUT', path: `/${index}/_mapping`, body })
}

/**
 * Adds the alias for queries by people, which hides drafts. If an index has that name, or the
 * permission is missing, there is none: nothing of ours needs it.
 */
async function nameAlias(
  connection: OpensearchConnection,
  index: string,
  { aliases }: IndexFacts,
  alias: string | undefined,
): Promise<void> {
  if (alias === undefined || Object.hasOwn(aliases, alias)) return
  await connection.request({
    method: 'PUT',
    path: `/${index}/_alias/${alias}`,
    body: { filter: { exists: { field: 'status' } } },
    expect: [400, 403],
  })
}

/** An index that already has an alias is written through it, wherever it may lead later. */
async function openDoor(
  connection: OpensearchConnection,
  index: string,
  { aliases }: IndexFacts,
): Promise<string> {
  if (Object.hasOwn(aliases, index)) return index
  const writeAlias = doorOf(index)
  // An index of an earlier version has none.
  if (!Object.hasOwn(aliases, writeAlias))
    await connection.request({
      method: 'PUT',
      path: `/${index}/_alias/${writeAlias}`,
      body: doorway,
    })
  return writeAlias
}

async function checkServer(connection: OpensearchConnection, { node }: Address): Promise<void> {
  const { body } = await connection.request<{
    version?: { number?: string; distribution?: string }
  }>({
    method: 'GET',
    path: '/',
    expect: [404, 405],
  })
  const { number, distribution } = body.version ?? {}
  if (number === undefined)
    throw unsafe(`${node} does not answer like OpenSearch: OpenSearch 2 or later is needed`)
  if (distribution !== 'opensearch' || Number.parseInt(number, 10) < 2)
    throw unsafe(
      `${node} is ${distribution ?? 'Elasticsearch'} ${number}: OpenSearch 2 or later is needed`,
    )
}

async function makeIndex(
  connection: OpensearchConnection,
  { replicas }: Address,
  index: string,
  properties: object,
): Promise<void> {
  const copies =
    replicas === undefined ? { auto_expand_replicas: '0-1' } : { number_of_replicas: replicas }
  const mappings = { dynamic: false, _meta: { redrive: formVersion }, properties }
  const settings = { index: { number_of_shards: 1, ...copies } }
  const { body } = await connection.request<{ error?: { type?: string; reason?: string } }>({
    method: 'PUT',
    path: `/${index}`,
    body: { mappings, settings, aliases: { [doorOf(index)]: doorway } },
    expect: [400],
  })
  if (body.error && body.error.type !== 'resource_already_exists_exception')
    throw unsafe(`the index ${index} could not be created: ${body.error.reason ?? body.error.type}`)
}

export interface IndexFacts {
  aliases: object
  mappings: { _meta?: { redrive?: number } }
  settings: {
    index: {
      translog?: { durability?: string }
      number_of_replicas?: string
      blocks?: Record<string, string>
    }
  }
}

/** Facts about existing indices, by the requested names: an index may be addressed by an alias. */
export async function factsOf(
  connection: OpensearchConnection,
  names: readonly string[],
): Promise<Map<string, IndexFacts>> {
  const { body } = await connection.request<Record<string, IndexFacts>>({
    method: 'GET',
    path: `/${names.join()}`,
    query: { ignore_unavailable: true },
    expect: [404],
  })
  const found = new Map<string, IndexFacts>()
  for (const name of names)
    for (const [index, facts] of Object.entries(body))
      if (index === name || Object.hasOwn(facts.aliases ?? {}, name)) found.set(name, facts)
  return found
}

/** Why an index is not ours, or not safe for letters. */
export function problemOf(index: string, { mappings, settings }: IndexFacts): string | undefined {
  const { _meta: meta } = mappings
  if (meta?.redrive === undefined)
    return `the index ${index} does not belong to Redrive: choose another prefix`
  if (meta.redrive > formVersion)
    return `the index ${index} was written by a newer version of Redrive: upgrade this process`
  if (settings.index.translog?.durability === 'async')
    return `the index ${index} has index.translog.durability async, which loses letters: set it to request`
  return undefined
}

function unsafe(message: string): RedriveError {
  return new RedriveError('STORE_UNSAFE', `opensearch: ${message}`)
}

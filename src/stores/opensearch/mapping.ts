import { RedriveError } from '../../errors.ts'
import type { Address } from '../../backends/opensearch/address.ts'
import type { OpensearchConnection } from '../../backends/opensearch/connection.ts'

/**
 * The format version of documents. A process must not write to an index of a newer format, which it
 * would damage. In format 1, `task_id` was the id of the letter, and `error_category` its category.
 */
const formatVersion = 2

/** Longer strings are not indexed as terms: the limit of the server is 32,766 bytes. */
const maxTermLength = 8191

const keyword = { type: 'keyword', ignore_above: maxTermLength }
/** A keyword that can be searched by its own name, and as `.keyword`, which many tools use. */
const word = { ...keyword, fields: { keyword } }
const text = { type: 'text', fields: { keyword } }
/** A date for queries by people, and the string itself for comparisons. */
const date = { type: 'date', ignore_malformed: true, fields: { iso: keyword } }
const long = { type: 'long' }
/** Stored, but not indexed. */
const unindexed = { type: 'object', enabled: false }

/**
 * The search fields of letters. The first fifteen have the names of the workflow design, for its
 * queries.
 */
export const letterFields = {
  task_id: { ...keyword, fields: { keyword, text: { type: 'text' } } },
  task: unindexed,
  repos: keyword,
  error: text,
  failed_at: date,
  retry_count: long,
  max_retries: long,
  retry_policy: word,
  next_retry_at: date,
  status: word,
  metadata: unindexed,
  error_category: word,
  last_error: text,
  total_attempts: long,
  updated_at: date,
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
  dead_lettered_at: date,
  settled_at: date,
  expires_at: date,
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
  head: unindexed,
  history: unindexed,
  payload: { type: 'binary' },
  original: { type: 'binary' },
  sums: unindexed,
  damage: unindexed,
  stamp: unindexed,
}

const records = {
  kind: keyword,
  id: keyword,
  value: unindexed,
  version: long,
  updated_at: unindexed,
  stamp: unindexed,
}

/** Dedupe keys, lanes and totals. Existing stores have an index of this name, so it stays. */
const books = { kind: keyword, name: keyword }

/** The fields of each index. Other fields are stored, but never indexed. */
const indices = { letters, records, books }

export type IndexName = keyof typeof indices

export const indexOf = (prefix: string, name: string): string => `${prefix}-${name}`

/** The indices of a store. */
export const indicesOf = (prefix: string): string[] =>
  Object.keys(indices).map((name) => indexOf(prefix, name))

/** The alias for writes to an index. The server deletes the alias with the index. */
const writeAliasOf = (index: string): string => `${index}-writes`
/** Excludes other indices with this alias, such as one restored under another name, from writes. */
const writeAliasSettings = { is_write_index: true }

/** The indices that get the alias for queries by people. */
const searchableIndices = new Set(['letters', 'search'])

/** An index with documents of an older format. */
export interface OldIndex {
  name: string
  /** Must be called once the documents are migrated. */
  markMigrated: () => Promise<void>
}

/**
 * Creates missing indices, adds new fields, and rejects unsafe settings. Safe from several
 * processes at once. Returns the indices with documents of an older format.
 */
export async function openIndices(
  connection: OpensearchConnection,
  address: Address,
  wanted: Record<string, object> = indices,
): Promise<OldIndex[]> {
  await checkServer(connection, address)
  const names = Object.keys(wanted).map((name) => indexOf(address.prefix, name))
  const existing = await readIndexInfo(connection, names)
  for (const [name, properties] of Object.entries(wanted)) {
    const index = indexOf(address.prefix, name)
    if (!existing.has(index)) await createIndex(connection, address, index, properties)
  }
  // New indices are checked as well: a process of another version may have created them first.
  const all = existing.size === names.length ? existing : await readIndexInfo(connection, names)
  const oldIndices: OldIndex[] = []
  for (const [name, properties] of Object.entries(wanted)) {
    const index = indexOf(address.prefix, name)
    const info = all.get(index)
    if (!info) continue
    const problem = problemOf(index, info)
    if (problem !== undefined) throw unsafe(problem)
    connection.writeAliases.set(index, await ensureWriteAlias(connection, index, info))
    if (formatOf(info) < formatVersion) {
      await putMapping(connection, index, { properties })
      const markMigrated = (): Promise<void> =>
        putMapping(connection, index, { _meta: { redrive: formatVersion } })
      oldIndices.push({ name, markMigrated })
    }
    if (searchableIndices.has(name)) await addAlias(connection, index, info, address.alias)
  }
  return oldIndices
}

function formatOf({ mappings: { _meta: meta } }: IndexInfo): number {
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
 * Adds the alias for queries by people, which hides drafts. Does nothing if an index has that name,
 * or if the permission is missing: the store does not need the alias.
 */
async function addAlias(
  connection: OpensearchConnection,
  index: string,
  { aliases }: IndexInfo,
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

/**
 * Returns the alias for writes to an index, and adds the alias if it is missing. If the name of the
 * index is itself an alias, that alias is used.
 */
async function ensureWriteAlias(
  connection: OpensearchConnection,
  index: string,
  { aliases }: IndexInfo,
): Promise<string> {
  if (Object.hasOwn(aliases, index)) return index
  const writeAlias = writeAliasOf(index)
  // Indices of earlier versions have no such alias.
  if (!Object.hasOwn(aliases, writeAlias))
    await connection.request({
      method: 'PUT',
      path: `/${index}/_alias/${writeAlias}`,
      body: writeAliasSettings,
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
    throw unsafe(`${node} is not an OpenSearch server: OpenSearch 2 or later is needed`)
  if (distribution !== 'opensearch' || Number.parseInt(number, 10) < 2)
    throw unsafe(
      `${node} is ${distribution ?? 'Elasticsearch'} ${number}: OpenSearch 2 or later is needed`,
    )
}

async function createIndex(
  connection: OpensearchConnection,
  { replicas }: Address,
  index: string,
  properties: object,
): Promise<void> {
  const replicaSettings =
    replicas === undefined ? { auto_expand_replicas: '0-1' } : { number_of_replicas: replicas }
  const mappings = { dynamic: false, _meta: { redrive: formatVersion }, properties }
  const settings = { index: { number_of_shards: 1, ...replicaSettings } }
  const { body } = await connection.request<{ error?: { type?: string; reason?: string } }>({
    method: 'PUT',
    path: `/${index}`,
    body: { mappings, settings, aliases: { [writeAliasOf(index)]: writeAliasSettings } },
    expect: [400],
  })
  if (body.error && body.error.type !== 'resource_already_exists_exception')
    throw unsafe(`the index ${index} could not be created: ${body.error.reason ?? body.error.type}`)
}

export interface IndexInfo {
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

/** Reads existing indices by their names. A name may be an alias. */
export async function readIndexInfo(
  connection: OpensearchConnection,
  names: readonly string[],
): Promise<Map<string, IndexInfo>> {
  const { body } = await connection.request<Record<string, IndexInfo>>({
    method: 'GET',
    path: `/${names.join()}`,
    query: { ignore_unavailable: true },
    expect: [404],
  })
  const infos = new Map<string, IndexInfo>()
  for (const name of names)
    for (const [index, info] of Object.entries(body))
      if (index === name || Object.hasOwn(info.aliases ?? {}, name)) infos.set(name, info)
  return infos
}

/** Why an index cannot be used. Undefined if it can. */
export function problemOf(index: string, { mappings, settings }: IndexInfo): string | undefined {
  const { _meta: meta } = mappings
  if (meta?.redrive === undefined)
    return `the index ${index} does not belong to Redrive: choose another prefix`
  if (meta.redrive > formatVersion)
    return `the index ${index} was written by a newer version of Redrive: upgrade this process`
  if (settings.index.translog?.durability === 'async')
    return `the index ${index} has index.translog.durability async, which loses letters: set it to request`
  return undefined
}

function unsafe(message: string): RedriveError {
  return new RedriveError('STORE_UNSAFE', `opensearch: ${message}`)
}

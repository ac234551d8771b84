import { RedriveError } from '../../errors.ts'
import type { Address } from '../../backends/opensearch/address.ts'
import type { Wire } from '../../backends/opensearch/connection.ts'

/**
 * The form of our documents. A store of a later version may keep them in a way that we would damage. In form 1 `task_id` was the id of the
 * letter and `error_category` our category.
 */
export const formVersion = 2

/** Texts longer than this cannot be looked up whole: the index takes 32,766 bytes in one term. */
const longestTerm = 8191

const keyword = { type: 'keyword', ignore_above: longestTerm }
/** Looked up under its own name, and as `.keyword`, by which many tools ask. */
const word = { ...keyword, fields: { keyword } }
const text = { type: 'text', fields: { keyword } }
/** A date for people, and the text itself for comparing as letters do. */
const moment = { type: 'date', ignore_malformed: true, fields: { iso: keyword } }
const long = { type: 'long' }
/** Kept as it is, and never looked at. */
const stored = { type: 'object', enabled: false }

/** What letters can be searched by. The first fifteen are the names of the workflow design, for its queries. */
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

/** Our indices by what is in them. Fields that are not named here are kept, but never indexed. */
const indices = { letters, records, books }

export type IndexName = keyof typeof indices

export const indexOf = (prefix: string, name: string): string => `${prefix}-${name}`

/** The indices of a store. */
export const indicesOf = (prefix: string): string[] =>
  Object.keys(indices).map((name) => indexOf(prefix, name))

/** The alias that an index is written by. It goes when the index goes. */
const doorOf = (index: string): string => `${index}-writes`
/** No other index, one that was restored under another name for instance, can come in between. */
const doorway = { is_write_index: true }

/** The indices that letters are searched in, which also go by the alias. */
const searched = new Set(['letters', 'search'])

/** An index that is of an older form, and what to call when its documents have been brought up to date. */
export interface OldIndex {
  name: string
  done: () => Promise<void>
}

/**
 * Creates what is not there, adds fields that are new, and refuses what would break a promise. Safe from several processes at once. Returns the
 * indices with documents of an older form.
 */
export async function openIndices(
  wire: Wire,
  address: Address,
  wanted: Record<string, object> = indices,
): Promise<OldIndex[]> {
  await checkServer(wire, address)
  const names = Object.keys(wanted).map((name) => indexOf(address.prefix, name))
  const there = await factsOf(wire, names)
  for (const [name, properties] of Object.entries(wanted)) {
    const index = indexOf(address.prefix, name)
    if (!there.has(index)) await makeIndex(wire, address, index, properties)
  }
  // Also those just made: another process may have been faster, and may be another version.
  const all = there.size === names.length ? there : await factsOf(wire, names)
  const old: OldIndex[] = []
  for (const [name, properties] of Object.entries(wanted)) {
    const index = indexOf(address.prefix, name)
    const facts = all.get(index)
    if (!facts) continue
    const problem = problemOf(index, facts)
    if (problem !== undefined) throw unsafe(problem)
    wire.doors.set(index, await openDoor(wire, index, facts))
    if (formOf(facts) < formVersion) {
      await putMapping(wire, index, { properties })
      const done = (): Promise<void> => putMapping(wire, index, { _meta: { redrive: formVersion } })
      old.push({ name, done })
    }
    if (searched.has(name)) await nameAlias(wire, index, facts, address.alias)
  }
  return old
}

function formOf({ mappings: { _meta: meta } }: IndexFacts): number {
  return meta?.redrive ?? 0
}

async function putMapping(wire: Wire, index: string, body: object): Promise<void> {
  await wire.ask({ method: 'PUT', path: `/${index}/_mapping`, body })
}

/**
 * Adds the alias for queries of people, under which drafts are out of sight. Where an index has that name, or we may not, there is none: nothing
 * of ours needs it.
 */
async function nameAlias(
  wire: Wire,
  index: string,
  { aliases }: IndexFacts,
  alias: string | undefined,
): Promise<void> {
  if (alias === undefined || Object.hasOwn(aliases, alias)) return
  await wire.ask({
    method: 'PUT',
    path: `/${index}/_alias/${alias}`,
    body: { filter: { exists: { field: 'status' } } },
    expect: [400, 403],
  })
}

/** One that goes by an alias already is written by that, wherever it may lead later. */
async function openDoor(wire: Wire, index: string, { aliases }: IndexFacts): Promise<string> {
  if (Object.hasOwn(aliases, index)) return index
  const door = doorOf(index)
  // An index of an earlier version has none.
  if (!Object.hasOwn(aliases, door))
    await wire.ask({ method: 'PUT', path: `/${index}/_alias/${door}`, body: doorway })
  return door
}

async function checkServer(wire: Wire, { node }: Address): Promise<void> {
  const { body } = await wire.ask<{ version?: { number?: string; distribution?: string } }>({
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
  wire: Wire,
  { replicas }: Address,
  index: string,
  properties: object,
): Promise<void> {
  const copies =
    replicas === undefined ? { auto_expand_replicas: '0-1' } : { number_of_replicas: replicas }
  const mappings = { dynamic: false, _meta: { redrive: formVersion }, properties }
  const settings = { index: { number_of_shards: 1, ...copies } }
  const { body } = await wire.ask<{ error?: { type?: string; reason?: string } }>({
    method: 'PUT',
    path: `/${index}`,
    body: { mappings, settings, aliases: { [doorOf(index)]: doorway } },
    expect: [400],
  })
  if (body.error && body.error.type !== 'resource_already_exists_exception')
    throw unsafe(`the index ${index} could not be made: ${body.error.reason ?? body.error.type}`)
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

/** What is known of the indices that are there, by the names by which we ask: an index may go by an alias. */
export async function factsOf(
  wire: Wire,
  names: readonly string[],
): Promise<Map<string, IndexFacts>> {
  const { body } = await wire.ask<Record<string, IndexFacts>>({
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

/** Why an index cannot be ours, or cannot be trusted with letters. */
export function problemOf(index: string, { mappings, settings }: IndexFacts): string | undefined {
  const { _meta: meta } = mappings
  if (meta?.redrive === undefined)
    return `the index ${index} is not one of Redrive: choose another prefix`
  if (meta.redrive > formVersion)
    return `the index ${index} is of a later version of Redrive: upgrade this process`
  if (settings.index.translog?.durability === 'async')
    return `the index ${index} has index.translog.durability async, which loses letters: set it to request`
  return undefined
}

function unsafe(message: string): RedriveError {
  return new RedriveError('STORE_UNSAFE', `opensearch: ${message}`)
}

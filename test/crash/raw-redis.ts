import { createClient, RESP_TYPES } from 'redis'
import type { Dump } from './verify.ts'
import { dumpOfRows, type RawRow } from './raw-row.ts'

/** Indexes of the fields of a letter in its row. Duplicated here on purpose, as in raw-row.ts. */
const cell = { queue: 1, state: 2, reason: 6, epoch: 9, retries: 10 }
/** Strings and bytes begin with a checksum. */
const sealLength = 8
const bytesSealLength = 4

/** Reads the server by keys without their hash tag. */
interface Keys {
  matching: (pattern: string) => Promise<string[]>
  hash: (key: string) => Promise<Record<string, Buffer>>
  list: (key: string) => Promise<string[]>
  members: (key: string) => Promise<string[]>
}

/** The keys of the server, read with plain commands. */
export async function dumpKeys(url: string): Promise<Dump> {
  const place = new URL(url)
  const tag = `{${place.searchParams.get('prefix') ?? 'redrive'}}:`
  place.search = ''
  const client = createClient({ url: place.href, RESP: 2 })
  client.on('error', () => {})
  await client.connect()
  try {
    const bytes = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
    const keys: Keys = {
      matching: async (pattern) => {
        const matches = new Set<string>()
        for await (const some of client.scanIterator({ MATCH: tag + pattern, COUNT: 1000 }))
          for (const key of some) matches.add(key.slice(tag.length))
        return [...matches].sort()
      },
      hash: (key) => bytes.hGetAll(tag + key),
      list: (key) => client.lRange(tag + key, 0, -1),
      members: (key) => client.zRange(tag + key, 0, -1),
    }
    const rows: RawRow[] = []
    for (const key of await keys.matching('l:*')) rows.push(await rowOf(keys, key.slice(2)))
    return dumpOfRows(rows, await driftIn(keys, rows))
  } finally {
    client.destroy()
  }
}

async function rowOf(keys: Keys, id: string): Promise<RawRow> {
  const { r, x, o, b } = await keys.hash(`l:${id}`)
  const text = (field: Buffer | undefined): string => field?.toString().slice(sealLength) ?? ''
  const cells = JSON.parse(text(r)) as (string | number | false)[]
  return {
    id,
    queue: String(cells[cell.queue]),
    state: Number(cells[cell.state]),
    reason: cells[cell.reason] === false ? null : String(cells[cell.reason]),
    epoch: Number(cells[cell.epoch]),
    retries: Number(cells[cell.retries]),
    rest: text(x),
    origin: o ? text(o) : null,
    bytes: b ? b.subarray(bytesSealLength) : null,
    later: await keys.list(`h:${id}`),
  }
}

/** Index entries that contradict the rows, and histories without a letter. */
async function driftIn(keys: Keys, rows: readonly RawRow[]): Promise<string[]> {
  const listedIn = async (pattern: string): Promise<string[]> => {
    const entries: string[] = []
    for (const key of await keys.matching(pattern))
      for (const id of await keys.members(key)) entries.push(`${key} has ${id}`)
    return entries
  }
  const listed = await listedIn('i:*')
  const expected = new Set(rows.map(({ id, state, queue }) => `i:${state}:${queue} has ${id}`))
  const active = new Set(rows.filter(({ state }) => state < 2).map(({ id }) => id))
  const due = await listedIn('d:*')
  const ids = new Set(rows.map(({ id }) => id))
  const histories = await keys.matching('h:*')
  return [
    ...listed.filter((line) => !expected.has(line)).map((line) => `${line}, its row does not`),
    ...[...expected].filter((line) => !listed.includes(line)).map((line) => `not so: ${line}`),
    ...due.filter((line) => !active.has(line.split(' has ')[1]!)).map((line) => `still ${line}`),
    ...histories.filter((key) => !ids.has(key.slice(2))).map((key) => `${key} without a letter`),
  ]
}

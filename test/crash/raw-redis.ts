import { createClient, RESP_TYPES } from 'redis'
import { dumpOf, states, type RawLetter } from './raw-letter.ts'
import type { Dump } from './verify.ts'

/** Positions in a row: bytes, doubles, the lengths of strings, and the strings. */
const place = { state: 0, reason: 5, epoch: 17, retries: 25, maxRetries: 33, lengths: 145 }
/** The positions of the strings in a row, and of the origin in a body. */
const stringsAt = 165
const originAt = 8

/** Reads the server by keys without their hash tag. */
interface Keys {
  matching: (pattern: string) => Promise<string[]>
  string: (key: string) => Promise<Buffer | null>
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
      string: (key) => bytes.get(tag + key),
      members: (key) => client.zRange(tag + key, 0, -1),
    }
    const letters: RawLetter[] = []
    for (const key of await keys.matching('l:*')) {
      const id = key.slice(2)
      letters.push(letterOf(id, (await keys.string(key))!, await keys.string(`b:${id}`)))
    }
    return dumpOf(letters, await driftIn(keys, letters))
  } finally {
    client.destroy()
  }
}

function letterOf(id: string, row: Buffer, body: Buffer | null): RawLetter {
  const reason = row.readInt8(place.reason)
  const [worker, origin, group, queue, policy] = [0, 4, 8, 12, 16].map((offset) =>
    row.readUInt32LE(place.lengths + offset),
  ) as [number, number, number, number, number]
  const queueAt = stringsAt + group
  return {
    id,
    queue: row.toString('utf8', queueAt, queueAt + queue),
    state: row.readInt8(place.state),
    reason: reason < 0 ? null : reason,
    epoch: row.readDoubleLE(place.epoch),
    retries: row.readDoubleLE(place.retries),
    maxRetries: row.readDoubleLE(place.maxRetries),
    history: row.toString('utf8', queueAt + queue + policy + worker),
    bytes: body && body.subarray(originAt + origin),
  }
}

/** Index entries that contradict the letters. */
async function driftIn(keys: Keys, letters: readonly RawLetter[]): Promise<string[]> {
  const listedIn = async (pattern: string): Promise<string[]> => {
    const entries: string[] = []
    for (const key of await keys.matching(pattern))
      for (const id of await keys.members(key)) entries.push(`${key} has ${id}`)
    return entries
  }
  const listed = new Set(await listedIn('i:*'))
  const expected = new Set(letters.map(({ id, queue, state }) => `i:${state}:${queue} has ${id}`))
  const isActive = ({ state }: RawLetter): boolean =>
    states[state] === 'pending' || states[state] === 'retrying'
  const active = new Set(letters.filter(isActive).map(({ id }) => id))
  const due = await listedIn('d:*')
  return [
    ...[...listed].filter((line) => !expected.has(line)).map((line) => `${line}, its row does not`),
    ...[...expected].filter((line) => !listed.has(line)).map((line) => `not so: ${line}`),
    ...due.filter((line) => !active.has(line.split(' has ')[1]!)).map((line) => `still ${line}`),
  ]
}

import { createClient, RESP_TYPES } from 'redis'
import type { Action, Reason, State } from '../../src/letter/letter.ts'
import { shaOf } from './plan.ts'
import type { Stored } from './rules.ts'
import type { Dump } from './verify.ts'

/** Codes of the rows. Duplicated here on purpose: this reader must not use the product. */
const states: State[] = ['pending', 'retrying', 'resolved', 'exhausted', 'parked', 'archived']
const reasons: Reason[] = [
  'permanent',
  'malformed',
  'no-handler',
  'never',
  'crash-loop',
  'max-hops',
  'expired',
  'replay-limit',
  'dependency-failed',
  'operator',
  'retries-exhausted',
  'superseded',
]
const actions: Action[] = [
  'capture',
  'occur',
  'claim',
  'resolve',
  'reschedule',
  'exhaust',
  'park',
  'release',
  'retry',
  'review',
  'edit',
  'replay',
  'archive',
  'restore',
  'remove',
  'evict',
  'wake',
]

/** Positions in a row: bytes, doubles, the lengths of two strings, and the strings. */
const place = { state: 0, reason: 5, epoch: 17, retries: 25, maxRetries: 33, lengths: 145 }
/** The payload begins with a checksum. */
const crcLength = 4

interface Letter {
  queue: string
  stored: Stored
}

/** Reads the server by keys without their hash tag. */
interface Keys {
  matching: (pattern: string) => Promise<string[]>
  hash: (key: string) => Promise<Record<string, Buffer>>
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
      members: (key) => client.zRange(tag + key, 0, -1),
    }
    const letters: Letter[] = []
    for (const key of await keys.matching('l:*'))
      letters.push(letterOf(key.slice(2), await keys.hash(key)))
    return {
      letters: letters.map(({ stored }) => stored),
      byState: countBy(letters, ({ stored }) => stored.state),
      byQueue: countBy(letters, ({ queue }) => queue),
      problems: await driftIn(keys, letters),
    }
  } finally {
    client.destroy()
  }
}

function letterOf(id: string, { r, h, b }: Record<string, Buffer>): Letter {
  const [row, lines] = [r!, h!.toString().split('\n')]
  const reason = row.readInt8(place.reason)
  const strings = row.readUInt32LE(place.lengths) + row.readUInt32LE(place.lengths + 4)
  const stored: Stored = {
    id,
    state: states[row.readInt8(place.state)]!,
    ...(reason < 0 ? {} : { reason: reasons[reason]! }),
    epoch: row.readDoubleLE(place.epoch),
    retries: row.readDoubleLE(place.retries),
    maxRetries: row.readDoubleLE(place.maxRetries),
    sha: b ? shaOf(b.subarray(crcLength)) : 'no body',
    actions: lines.map((line) => actions[(JSON.parse(line) as number[])[2]!]!),
  }
  return { queue: row.toString('utf8', place.lengths + 8 + strings), stored }
}

function countBy(
  letters: readonly Letter[],
  keyOf: (letter: Letter) => string,
): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const letter of letters) counts[keyOf(letter)] = (counts[keyOf(letter)] ?? 0) + 1
  return counts
}

/** Index entries that contradict the letters. */
async function driftIn(keys: Keys, letters: readonly Letter[]): Promise<string[]> {
  const listedIn = async (pattern: string): Promise<string[]> => {
    const entries: string[] = []
    for (const key of await keys.matching(pattern))
      for (const id of await keys.members(key)) entries.push(`${key} has ${id}`)
    return entries
  }
  const listed = new Set(await listedIn('i:*'))
  const expected = new Set(
    letters.map(
      ({ queue, stored }) => `i:${states.indexOf(stored.state)}:${queue} has ${stored.id}`,
    ),
  )
  const isActive = ({ state }: Stored): boolean => state === 'pending' || state === 'retrying'
  const active = new Set(
    letters
      .map(({ stored }) => stored)
      .filter(isActive)
      .map(({ id }) => id),
  )
  const due = await listedIn('d:*')
  return [
    ...[...listed].filter((line) => !expected.has(line)).map((line) => `${line}, its row does not`),
    ...[...expected].filter((line) => !listed.has(line)).map((line) => `not so: ${line}`),
    ...due.filter((line) => !active.has(line.split(' has ')[1]!)).map((line) => `still ${line}`),
  ]
}

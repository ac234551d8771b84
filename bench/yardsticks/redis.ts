import { createClient, RESP_TYPES } from 'redis'
import { systemClock } from '../../src/clock/clock.ts'
import { DeadLetterQueue } from '../../src/index.ts'
import type { Location } from '../location.ts'
import { rate } from '../harness.ts'
import { failure, operation } from '../sample.ts'

type Server = Awaited<ReturnType<typeof connectClient>>

/** One of the commands that store a letter, with a placeholder for its id. */
type Template =
  | { kind: 'hash'; key: string; fields: [string, Buffer][] }
  | { kind: 'zset'; key: string; member: string; score: number }

const idMark = '<id>'

/**
 * Throughput of Redis alone: writes the hashes and index entries of captured letters with HSET and
 * ZADD, pipelined on one connection. No letter is created, checked, classified or counted, and
 * nothing is atomic.
 */
export async function rawRedis(
  location: Location,
  count: number,
  perWrite: number,
): Promise<number> {
  const url = location.url(`raw-${perWrite}`)
  const prefix = new URL(url).searchParams.get('prefix')!
  const server = await connectClient(location.at)
  try {
    const templates = await templatesOf(server, url, prefix)
    const write = (): Promise<unknown> => writeLetters(server, templates, perWrite)
    for (let n = 0; n < Math.min(count, 10 * perWrite); n += perWrite) await write()
    const startMs = performance.now()
    for (let n = 0; n < count; n += perWrite) await write()
    return rate(count, performance.now() - startMs)
  } finally {
    server.destroy()
  }
}

async function connectClient(url: string) {
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  return client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
}

/** Stores one letter and reads the keys with its id. */
async function templatesOf(server: Server, url: string, prefix: string): Promise<Template[]> {
  const queue = await DeadLetterQueue.open(url, { onStoreDown: 'fail' })
  const { id } = await queue.enqueue(operation(0), failure(0))
  await queue.close()
  const templates: Template[] = []
  for await (const keys of server.scanIterator({ MATCH: `*${prefix}*`, COUNT: 1000 }))
    for (const raw of keys) templates.push(...(await templatesIn(server, raw.toString(), id)))
  return templates
}

async function templatesIn(server: Server, key: string, id: string): Promise<Template[]> {
  const type = (await server.type(key)).toString()
  if (type === 'hash' && key.includes(id)) {
    const fields = Object.entries(await server.hGetAll(key))
    return [{ kind: 'hash', key: key.replace(id, idMark), fields }]
  }
  if (type !== 'zset') return []
  const entries = await server.zRangeWithScores(key, 0, -1)
  return entries
    .map(({ value, score }) => ({ member: value.toString(), score }))
    .filter(({ member }) => member.includes(id))
    .map(({ member, score }) => ({ kind: 'zset', key, member: member.replace(id, idMark), score }))
}

function writeLetters(server: Server, templates: Template[], letters: number): Promise<unknown> {
  const pipeline = server.multi()
  for (let n = 0; n < letters; n++) {
    const id = systemClock.id()
    for (const template of templates) {
      if (template.kind === 'hash')
        pipeline.hSet(template.key.replace(idMark, id), Object.fromEntries(template.fields))
      else
        pipeline.zAdd(template.key, {
          value: template.member.replace(idMark, id),
          score: template.score,
        })
    }
  }
  return pipeline.execAsPipeline()
}

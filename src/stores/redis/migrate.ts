import { sourceKey } from '../rows/source-key.ts'
import { states } from '../../letter/letter.ts'
import { sourceIdOf } from '../../letter/source-id.ts'
import { checkSchema } from '../../backends/redis/safety.ts'
import { maxScriptItems } from './chunks.ts'
import type { Desk } from './desk.ts'
import { walk } from './finding.ts'
import { scripts } from './scripts.ts'

/** 1: before letters had an index by source id. */
const schemaVersion = 2

/** Brings the keys of an older version up to date. Harmless to repeat, and from several processes at once. */
export async function migrate(desk: Desk): Promise<void> {
  const { connection, tag } = desk
  if ((await checkSchema(connection, schemaVersion)) === schemaVersion) return
  await fillSourceIds(desk)
  await connection.send('HSET', `${tag}:meta`, 'schema', String(schemaVersion))
}

/** Writes the source ids of letters that were kept before there was an index for them, a few at a time. */
async function fillSourceIds(desk: Desk): Promise<void> {
  let pairs: string[] = []
  const fill = async (): Promise<void> => {
    if (pairs.length > 0) await desk.connection.run(scripts.setSources, pairs)
    pairs = []
  }
  for await (const { letter } of walk(desk, { state: [...states] })) {
    const source = sourceIdOf(letter)
    if (source !== undefined) pairs.push(letter.id, sourceKey(source))
    if (pairs.length >= 2 * maxScriptItems) await fill()
  }
  await fill()
}

import { sourceKey } from '../rows/source-key.ts'
import { states } from '../../letter/letter.ts'
import { sourceIdOf } from '../../letter/source-id.ts'
import { checkSchema } from '../../backends/redis/safety.ts'
import { maxScriptItems } from './chunks.ts'
import type { StoreContext } from './context.ts'
import { walk } from './find-letters.ts'
import { scripts } from './scripts.ts'

/** Version 1 had no index by source id. */
const schemaVersion = 2

/** Migrates the keys of an older version. May be repeated, and run in several processes. */
export async function migrate(context: StoreContext): Promise<void> {
  const { connection, tag } = context
  if ((await checkSchema(connection, schemaVersion)) === schemaVersion) return
  await fillSourceIds(context)
  await connection.send('HSET', `${tag}:meta`, 'schema', String(schemaVersion))
}

/** Indexes the source ids of letters that were stored before the index existed, a few at a time. */
async function fillSourceIds(context: StoreContext): Promise<void> {
  let pairs: string[] = []
  const fill = async (): Promise<void> => {
    if (pairs.length > 0) await context.connection.run(scripts.setSources, pairs)
    pairs = []
  }
  for await (const { letter } of walk(context, { state: [...states] })) {
    const source = sourceIdOf(letter)
    if (source !== undefined) pairs.push(letter.id, sourceKey(source))
    if (pairs.length >= 2 * maxScriptItems) await fill()
  }
  await fill()
}

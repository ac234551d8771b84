import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/clock/clock.ts'
import type { PackedLetter } from '../../src/stores/rows/form.ts'
import { Channel } from '../../src/backends/sqlite/channel.ts'
import type { AnyCall } from '../../src/backends/sqlite/protocol.ts'
import type { Location } from '../location.ts'
import { rate } from '../harness.ts'
import { sampleRows } from '../sample.ts'
import { openRaw } from './sqlite-raw.ts'

/**
 * Throughput of node:sqlite alone: writes the rows of the store into the same tables and indexes,
 * fully synchronous, in one thread, with a fixed number of letters per transaction. No letter is
 * created, checked, classified, counted or passed between threads: the counters are a cost of the
 * store.
 */
export async function rawSqlite(
  { at }: Location,
  count: number,
  perTransaction: number,
): Promise<number> {
  const path = join(at, `raw-${perTransaction}.db`)
  const rows = await sampleRows()
  const raw = openRaw(path)
  const run = (letters: number): void => {
    for (let n = 0; n < letters; n += perTransaction)
      raw.transaction(Array.from({ length: perTransaction }, (_, at) => fresh(rows, n + at)))
  }
  run(Math.min(count, 10 * perTransaction))
  const startMs = performance.now()
  run(count)
  const tookMs = performance.now() - startMs
  raw.close()
  removeFiles(path)
  return rate(count, tookMs)
}

const program = { file: new URL('./sqlite-thread.ts', import.meta.url), name: 'raw-sqlite' }

/** The same with one letter per transaction, each passed to a worker thread and awaited. */
export async function rawSqliteThread({ at }: Location, count: number): Promise<number> {
  const path = join(at, 'raw-thread.db')
  const rows = await sampleRows()
  const channel = Channel.take(program)
  channel.hold(true)
  let reply = Promise.withResolvers<void>()
  channel.listen({ receive: () => reply.resolve(), lose: (cause) => reply.reject(cause) })
  channel.send({ kind: 'open', options: { path } })
  const run = async (letters: number): Promise<void> => {
    for (let n = 0; n < letters; n++) {
      reply = Promise.withResolvers()
      const calls: AnyCall[] = [[n, 'add', fresh(rows, n)]]
      channel.send({ kind: 'batch', nowMs: systemClock.now(), calls })
      await reply.promise
    }
  }
  // A new thread has to compile its code again.
  await run(Math.min(count, 3000))
  const startMs = performance.now()
  await run(count)
  const tookMs = performance.now() - startMs
  reply = Promise.withResolvers()
  channel.send({ kind: 'close' })
  await reply.promise
  channel.release()
  removeFiles(path)
  return rate(count, tookMs)
}

/** The letter with a unique id. */
function fresh(rows: readonly PackedLetter[], n: number): PackedLetter {
  const packed = rows[n % rows.length]!
  packed[0][0] = systemClock.id()
  return packed
}

function removeFiles(path: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
}

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/clock/clock.ts'
import { Channel } from '../../src/backends/sqlite/channel.ts'
import type { AnyCall } from '../../src/backends/sqlite/protocol.ts'
import type { Location } from '../location.ts'
import { rate } from '../harness.ts'
import { failure, operation } from '../sample.ts'
import { openRaw, type RawLetter } from './sqlite-raw.ts'

/**
 * Throughput of node:sqlite alone: writes the letters of a prototype, fully synchronous, in one
 * thread, with a fixed number of letters per transaction. No letter is checked or classified.
 */
export async function rawSqlite(
  { at }: Location,
  count: number,
  perTransaction: number,
): Promise<number> {
  const path = join(at, `raw-${perTransaction}.db`)
  const raw = openRaw(path)
  const run = (letters: number): void => {
    for (let n = 0; n < letters; n += perTransaction)
      raw.transaction(Array.from({ length: perTransaction }, (_, at) => letterOf(n + at)))
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
  const channel = Channel.take(program)
  channel.hold(true)
  let heard = Promise.withResolvers<void>()
  channel.listen({ receive: () => heard.resolve(), lose: (cause) => heard.reject(cause) })
  channel.send({ kind: 'open', options: { path } })
  const run = async (letters: number): Promise<void> => {
    for (let n = 0; n < letters; n++) {
      heard = Promise.withResolvers()
      const calls: AnyCall[] = [[n, 'add', letterOf(n)]]
      channel.send({ kind: 'batch', nowMs: systemClock.now(), calls })
      await heard.promise
    }
  }
  // A new thread has to compile its code again.
  await run(Math.min(count, 3000))
  const startMs = performance.now()
  await run(count)
  const tookMs = performance.now() - startMs
  heard = Promise.withResolvers()
  channel.send({ kind: 'close' })
  await heard.promise
  channel.release()
  removeFiles(path)
  return rate(count, tookMs)
}

const row = JSON.stringify({ version: 1, maxRetries: 5, policy: { kind: 'immediate' }, tags: [] })

/** A letter with a unique id. */
function letterOf(n: number): RawLetter {
  const { type, payload } = operation(n)
  const { name, message, stack } = failure(n)
  const origin = JSON.stringify({ source: { kind: 'operation', type }, name, message, stack })
  return [systemClock.id(), systemClock.now(), row, origin, JSON.stringify(payload)]
}

function removeFiles(path: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
}

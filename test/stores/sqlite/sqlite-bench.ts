import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/index.ts'
import type { ClosableBench } from '../../contract/run-store-contract.ts'
import { aFolder } from '../../folders.ts'
import { openBench } from '../bench.ts'

// Every store starts a thread, and every thread would strip the types of the same files again.
process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'node-compile-cache')

/** A directory of its own, and how to be rid of it. */
export async function temporaryDirectory(): Promise<{ path: string; clear: () => Promise<void> }> {
  const path = aFolder('redrive')
  return { path, clear: () => rm(path, { recursive: true, force: true }) }
}

/** A store on a fresh file, with its time in the hands of the test. */
export async function openSqliteBench(
  clock: FakeClock = fakeClock(),
): Promise<ClosableBench & { path: string }> {
  const directory = await temporaryDirectory()
  const path = join(directory.path, 'letters.db')
  const bench = await openBench(
    () => sqliteStore({ path, clock }),
    clock,
    () => directory.clear(),
  )
  return { ...bench, path }
}

import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { resolve } from '../../../src/letter/moves.ts'
import type { Store } from '../../../src/store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { runSync } from '../../processes.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

describe('sqliteStore on a disk that fills up', () => {
  it('rejects new letters, keeps stored ones usable, and recovers once there is space', async ({
    skip,
  }) => {
    const directory = await temporaryDirectory()
    const unmount = mountSmall(directory.path)
    if (!unmount) {
      await directory.clear()
      skip('a tmpfs can only be mounted by root')
      return
    }
    const store = sqliteStore({ path: join(directory.path, 'letters.db') })
    try {
      await fillAndFree(store, join(directory.path, 'ballast'))
    } finally {
      await store.close()
      unmount()
      await directory.clear()
    }
  })
})

async function fillAndFree(store: Store, ballast: string): Promise<void> {
  await writeFile(ballast, new Uint8Array(1_500_000))
  await store.open()
  const kept = await addUntilFull(store)
  expect(await store.get(kept.map(({ id }) => id))).toEqual(kept)
  const by = { at: kept[0]!.updatedAt, actor: 'ada', guard: 'version' } as const
  expect(await store.apply([resolve(kept[0]!, by)])).toEqual(['written'])
  expect(await store.remove({ ids: [kept[1]!.id] })).toBe(1)
  expect((await store.health()).ok).toBe(false)
  await rm(ballast)
  expect(await store.add([aLetter()])).toEqual([{ kind: 'added' }])
  expect((await store.health()).problems).toEqual([])
  const states = new Map([
    ['resolved', 1],
    ['pending', kept.length - 1],
  ])
  expect(await store.tally('state')).toEqual(states)
}

/** A disk of four megabytes, or undefined where this process may not have one. */
function mountSmall(path: string): (() => void) | undefined {
  try {
    runSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', path], { stdio: 'ignore' })
  } catch {
    return undefined
  }
  return () => void runSync('umount', [path])
}

/** What was acknowledged before the first refusal. */
async function addUntilFull(store: Store): Promise<DeadLetter[]> {
  const kept: DeadLetter[] = []
  for (;;) {
    const bytes = new Uint8Array(2000)
    const payload = { bytes, contentType: 'application/octet-stream', size: 2000, version: 1 }
    const letter = aLetter({ payload })
    const error: unknown = await store.add([letter]).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    if (error) {
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
      return kept
    }
    kept.push(letter)
  }
}

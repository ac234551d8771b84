import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../../../src/clock/clock.ts'
import { sqliteMailbox } from '../../../src/mailboxes/sqlite/sqlite.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { openMailboxBench } from '../bench.ts'

// Every file starts a thread, and every thread would strip the types of the same files again.
process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'node-compile-cache')

/** A directory of its own, and how to be rid of it. */
export async function temporaryDirectory(): Promise<{ path: string; clear: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'redrive-'))
  return { path, clear: () => rm(path, { recursive: true, force: true }) }
}

/**
 * The same time by another object. Mailboxes of one clock share a thread and hear of each other;
 * this is as good as another process.
 */
function sameTime(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    mono: () => clock.mono(),
    random: () => clock.random(),
    id: () => clock.id(),
    timer: (ms, fire) => clock.timer(ms, fire),
  }
}

/**
 * Mailboxes in a new file with a fake clock. A second handle on a mailbox represents another
 * process.
 */
export async function openSqliteBench(): ReturnType<typeof openMailboxBench> {
  const directory = await temporaryDirectory()
  const path = join(directory.path, 'mail.db')
  const clock = fakeClock()
  const made = new Set<string>()
  return openMailboxBench({
    make: (name, resolver, more) => {
      const mine = made.has(name) ? sameTime(clock) : clock
      made.add(name)
      return sqliteMailbox({ path, name, clock: mine, resolver, ...more })
    },
    time: clock,
    leave: () => directory.clear(),
  })
}

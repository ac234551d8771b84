// The temporary folder of a test run. Vitest calls this before the first test file and after the
// last.
import { mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAlive } from '../scripts/servers/machine.ts'

// What tests write is soon gone. Where memory has room for it, no slow disk holds them up.
const memory = '/dev/shm'
const roomBytes = 4 * 2 ** 30

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= roomBytes
  } catch {
    return false
  }
}

/** Removes the folders of runs that were killed. */
function removeAbandoned(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = Number(/^redrive-run-(\d+)$/.exec(name)?.[1])
    if (pid > 0 && !isAlive({ pid, mark: 'node' }))
      rmSync(join(parent, name), { recursive: true, force: true })
  }
}

/** Each run has a folder of its own, so that concurrent runs share no file. */
export function setup(): () => void {
  const parent = process.env['TMPDIR'] ?? (hasRoom(memory) ? memory : tmpdir())
  removeAbandoned(parent)
  const folder = join(parent, `redrive-run-${process.pid}`)
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

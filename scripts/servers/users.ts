// The test runs that use the servers of this checkout now. The last one to end stops the servers.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { home, isAlive } from './machine.ts'

const folder = join(home, 'users')

/** Whether test runs use the servers, apart from those that were killed. */
export function hasUsers(): boolean {
  mkdirSync(folder, { recursive: true })
  const pids = readdirSync(folder).map(Number)
  const dead = pids.filter((pid) => !isAlive({ pid, mark: 'node' }))
  for (const pid of dead) rmSync(join(folder, String(pid)), { force: true })
  return dead.length < pids.length
}

export function addUser(): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, String(process.pid)), '')
}

export function removeUser(): void {
  rmSync(join(folder, String(process.pid)), { force: true })
}

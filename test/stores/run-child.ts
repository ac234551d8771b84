import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Runs `child.ts` of a store and returns the lines that it printed. */
export async function runChild(store: 'sqlite' | 'postgres', ...args: string[]): Promise<string[]> {
  const script = join(import.meta.dirname, store, 'child.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [script, ...args], {
    timeout: 60_000,
  })
  return stdout.split('\n').filter(Boolean)
}

import { join } from 'node:path'
import { run } from '../processes.ts'

/** Runs `child.ts` of a store and returns the lines that it printed. */
export async function runChild(store: 'sqlite' | 'postgres', ...args: string[]): Promise<string[]> {
  const script = join(import.meta.dirname, store, 'child.ts')
  const { stdout } = await run(process.execPath, [script, ...args], { timeout: 60_000 })
  return stdout.split('\n').filter(Boolean)
}

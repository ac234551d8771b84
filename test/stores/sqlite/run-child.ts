import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Runs `child.ts` to its end and answers what it said, line by line. */
export async function runChild(task: string, path: string, name?: string): Promise<string[]> {
  const script = join(import.meta.dirname, 'child.ts')
  const args = [script, task, path, ...(name === undefined ? [] : [name])]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 25_000 })
  return stdout.split('\n').filter(Boolean)
}

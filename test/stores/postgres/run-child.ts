import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { url } from './postgres-bench.ts'

/** Runs `child.ts` to its end and answers what it said, line by line. */
export async function runChild(task: string, schema: string, name = 'child'): Promise<string[]> {
  const script = join(import.meta.dirname, 'child.ts')
  const args = [script, task, url, schema, name]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
  return stdout.split('\n').filter(Boolean)
}

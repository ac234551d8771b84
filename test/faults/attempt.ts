import { writeSync } from 'node:fs'
import { RedriveError } from '../../src/errors.ts'

/** Runs an action, once more if it fails, and prints the result of each try. Repeating is safe. */
export async function attempt(name: string, run: () => Promise<unknown>): Promise<boolean> {
  for (const once of [1, 2])
    try {
      await run()
      writeSync(1, `ok ${name}\n`)
      return true
    } catch (error) {
      const code = error instanceof RedriveError ? error.code : String(error)
      writeSync(1, `refused ${name} ${once} ${code}\n`)
    }
  return false
}

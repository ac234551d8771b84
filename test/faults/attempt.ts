import { writeSync } from 'node:fs'
import { RedriveError } from '../../src/errors.ts'

/** Does it, twice if it fails, and says on stdout what came of each: the same again is harmless, so whoever was refused may repeat it. */
export async function attempt(name: string, act: () => Promise<unknown>): Promise<boolean> {
  for (const once of [1, 2])
    try {
      await act()
      writeSync(1, `ok ${name}\n`)
      return true
    } catch (error) {
      const code = error instanceof RedriveError ? error.code : String(error)
      writeSync(1, `refused ${name} ${once} ${code}\n`)
    }
  return false
}

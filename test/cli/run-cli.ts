import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { aFolder as createFolder } from '../folders.ts'
import { spawn } from '../processes.ts'
import { main, plainEnv, type Ran, type RunOptions } from './in-process.ts'

export { main, plainEnv, redrive, startRedrive, type Ran, type Started } from './in-process.ts'

/** Runs the CLI as its own process. */
export async function redriveProcess(
  args: readonly string[],
  { env = {}, cwd, input = '' }: Omit<RunOptions, 'node'> = {},
): Promise<Ran> {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...plainEnv, ...env },
    ...(cwd ? { cwd } : {}),
  })
  child.stdin.end(input)
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [out, err, exit] = await Promise.all([text(child.stdout), text(child.stderr), exited])
  return { out, err, exit }
}

/** A folder that is removed after the tests of the file. */
export function aFolder(): string {
  return createFolder('redrive-cli')
}

/** Creates a store file with these letters and returns its URL. */
export async function aStoreFile(folder: string, letters: readonly DeadLetter[]): Promise<string> {
  const path = join(folder, `${systemClock.id()}.db`)
  const store = sqliteStore({ path })
  await store.open()
  await store.add(letters)
  await store.close()
  return `sqlite:${path}`
}

/** Control and hidden characters, except line breaks. */
const controlCharacters = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

/** Checks that the output has no control characters. */
export function expectEscaped(output: string): void {
  expect(controlCharacters.exec(output)).toBeNull()
}

/** Also checks that the output fits 80 columns. */
export function expectToFit(output: string): void {
  expectEscaped(output)
  for (const line of output.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80)
}

/** A string with control characters for a terminal. */
export const hostileText =
  '\u001b]0;pwned\u0007\u001b[2J\u001b[31mred\r\nnext\u0000 \u009b1m\u202eltr \u2028 \ufeff'

// How long each test file took in the last complete run of this checkout.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from './commands.ts'
import type { Phase } from './phases.ts'

const path = join(root, 'node_modules', '.cache', 'redrive-test-durations.json')
const unknownMs = 2_000

export function saveDurations(files: readonly Phase[]): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, JSON.stringify(Object.fromEntries(files.map(({ name, ms }) => [name, ms]))))
}

/** The first files that together take no longer than this, and at least one. */
export function takeUntil(files: readonly string[], limitMs: number): string[] {
  const durations = readDurations()
  let sumMs = 0
  return files.filter((file, index) => {
    sumMs += durations[file] ?? unknownMs
    return index === 0 || sumMs <= limitMs
  })
}

function readDurations(): Record<string, number> {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record<string, number>
  } catch {
    return {}
  }
}

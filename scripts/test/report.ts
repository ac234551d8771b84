// The report of vitest, in the form of its JSON reporter.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { root } from './commands.ts'
import type { Phase } from './phases.ts'

export interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly startTime: number
    readonly endTime: number
  }[]
}

/** Undefined if the run ended before it wrote a report. */
export function readReport(path: string): Report | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Report
  } catch {
    return undefined
  }
}

/** The test files, slowest first. */
export function filesByDuration({ testResults }: Report): Phase[] {
  return testResults
    .map(({ name, startTime, endTime }) => ({
      name: relative(root, name),
      ms: endTime - startTime,
    }))
    .sort((a, b) => b.ms - a.ms)
}

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const run = promisify(execFile)

async function linesOf(example: string): Promise<string[]> {
  const path = join(import.meta.dirname, '../../examples', example)
  const { stdout } = await run(process.execPath, [path])
  // The moment at which a letter is due differs from run to run.
  return stdout
    .trim()
    .replaceAll(/, due \S+/g, '')
    .split('\n')
}

it('the call of a model is retried, then kept, then redelivered', async () => {
  expect(await linesOf('llm-call.ts')).toEqual([
    'a rate limit and an error, then it is well: the caller notices nothing',
    '  run 1: Error: HTTP 429',
    '  run 2: Error: HTTP 500',
    '  run 3: well',
    '  answer: HELLO',
    'no answer, a reset, an error: the call gives up, and its letter is kept',
    '  run 1: AbortError: This operation was aborted',
    '  run 2: TypeError: fetch failed',
    '  run 3: Error: HTTP 500',
    '  failed: Error: HTTP 500',
    '  kept: pending, dependency, attempts: 3',
    'it is well again: the letter is redelivered',
    '  run 1: well',
    '  answer: TRY LATER',
    '  letter: resolved',
  ])
})

it('the call of GitHub is retried, then kept, then redelivered, and comments once', async () => {
  expect(await linesOf('github-call.ts')).toEqual([
    'a rate limit, then an answer that gets lost: the caller notices nothing',
    '  run 1: Error: HTTP 429',
    '  run 2: AbortError: This operation was aborted',
    '  run 3: well',
    '  comment: was there already',
    'a reset, which this policy does not retry: the call fails, and its letter is kept',
    '  run 1: TypeError: fetch failed',
    '  failed: TypeError: fetch failed',
    'errors and no answer: the call gives up, and its letter is kept',
    '  run 1: Error: HTTP 500',
    '  run 2: AbortError: This operation was aborted',
    '  run 3: Error: HTTP 503',
    '  failed: Error: HTTP 503',
    'kept: pending, network, attempts: 1; now it is redelivered',
    '  run 1: well',
    '  comment: added',
    '  letter: resolved',
    'kept: pending, dependency, attempts: 3; now it is redelivered',
    '  run 1: well',
    '  comment: added',
    '  letter: resolved',
  ])
})

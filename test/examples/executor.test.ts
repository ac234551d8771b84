import { join } from 'node:path'
import { expect, it } from 'vitest'
import { run } from '../processes.ts'

async function linesOf(example: string): Promise<string[]> {
  const path = join(import.meta.dirname, '../../examples', example)
  const { stdout } = await run(process.execPath, [path])
  // The due time of a letter differs from run to run.
  return stdout
    .trim()
    .replaceAll(/, due \S+/g, '')
    .split('\n')
}

it('the model call is retried, then stored, then redelivered', async () => {
  expect(await linesOf('llm-call.ts')).toEqual([
    'a rate limit and an error, then success: the caller notices nothing',
    '  run 1: Error: HTTP 429',
    '  run 2: Error: HTTP 500',
    '  run 3: ok',
    '  answer: HELLO',
    'no answer, a reset, an error: the call fails, and its letter is stored',
    '  run 1: AbortError: This operation was aborted',
    '  run 2: TypeError: fetch failed',
    '  run 3: Error: HTTP 500',
    '  failed: Error: HTTP 500',
    '  stored: pending, dependency, attempts: 3',
    'the model works again: the letter is redelivered',
    '  run 1: ok',
    '  answer: TRY LATER',
    '  letter: resolved',
  ])
})

it('the GitHub call is retried, then stored, then redelivered, and comments once', async () => {
  expect(await linesOf('github-call.ts')).toEqual([
    'a rate limit, then a lost answer: the caller notices nothing',
    '  run 1: Error: HTTP 429',
    '  run 2: AbortError: This operation was aborted',
    '  run 3: ok',
    '  comment: already exists',
    'a reset, which this policy does not retry: the call fails, and its letter is stored',
    '  run 1: TypeError: fetch failed',
    '  failed: TypeError: fetch failed',
    'errors and no answer: the call fails, and its letter is stored',
    '  run 1: Error: HTTP 500',
    '  run 2: AbortError: This operation was aborted',
    '  run 3: Error: HTTP 503',
    '  failed: Error: HTTP 503',
    'stored: pending, network, attempts: 1; now it is redelivered',
    '  run 1: ok',
    '  comment: added',
    '  letter: resolved',
    'stored: pending, dependency, attempts: 3; now it is redelivered',
    '  run 1: ok',
    '  comment: added',
    '  letter: resolved',
  ])
})

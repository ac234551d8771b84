import { join } from 'node:path'
import { expect, it } from 'vitest'
import { run } from '../../processes.ts'

it('the example retries each repository until it succeeds, and then runs it no more', async () => {
  const example = join(import.meta.dirname, '../../../examples/workflow.ts')
  const { stdout } = await run(process.execPath, [example])
  expect(stdout.trim().split('\n')).toEqual([
    'run 1: no-var on api, web, docs with codemod',
    'partial, stored: web, docs will be retried',
    'run 2: no-var on web, docs with codemod',
    'run 3: no-var on docs with codemod',
    'capture',
    'reschedule: 1 of 3 targets is left',
    'resolve',
  ])
})

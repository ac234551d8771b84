import { join } from 'node:path'
import { expect, it } from 'vitest'
import { run } from '../processes.ts'

it('a group replies to requests and reports dead ones', async () => {
  const example = join(import.meta.dirname, '../../examples/redis-loop.ts')
  const { stdout } = await run(process.execPath, [example])
  expect(stdout.trim().split('\n').sort()).toEqual([
    'alert: large is dead: Error: the bank does not answer (attempt 3)',
    'alert: negative is dead: RangeError: an amount cannot be negative',
    'everything has ended: true',
    'ready: 200',
    'reply to large: Dead-lettered after 3 attempts: the bank does not answer (attempt 3)',
    'reply to negative: Dead-lettered after 1 attempts: an amount cannot be negative',
    'reply to small: charged 10',
  ])
})

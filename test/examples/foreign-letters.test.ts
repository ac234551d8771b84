import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { aFolder } from '../folders.ts'
import { run } from '../processes.ts'
import { backend, freshName } from '../servers/servers.ts'

const cwd = aFolder('redrive-example')

const root = join(import.meta.dirname, '../..')
const example = join(root, 'examples/foreign-letters.ts')
const { url, missing } = backend('rabbitmq')

it.skipIf(missing)('an order in a RabbitMQ dead letter queue is edited and returned', async () => {
  const { stdout } = await run(process.execPath, [example, url, freshName()], { cwd })
  expect(stdout.trim().split('\n')).toEqual([
    'an order for -42 of acme: rejected',
    'orders has a letter: parked, rejected',
    'an order for 42 of acme: charged',
    'the letter is resolved',
  ])
})

it('the guide shows the code of the example', async () => {
  const code = (await readFile(example, 'utf8'))
    .replaceAll("'../src/index.ts'", "'redrive'")
    .replaceAll("'../src/taps/", "'redrive/taps/")
    .replaceAll(".ts'", "'")
  const guide = await readFile(join(root, 'docs/guides/foreign-letters.md'), 'utf8')
  const [, shown = ''] = /```ts\n([\s\S]*?)```/.exec(guide) ?? []
  const blocks = shown.trim().split('\n\n')
  expect(blocks.length).toBeGreaterThan(2)
  for (const block of blocks) expect(code).toContain(block)
})

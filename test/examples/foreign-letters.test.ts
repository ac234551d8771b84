import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { backend, freshName } from '../servers/servers.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const example = join(root, 'examples/foreign-letters.ts')
const { url, missing } = backend('rabbitmq')

it.skipIf(missing)('an order in a RabbitMQ dead letter queue is edited and returned', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'redrive-example-'))
  try {
    const { stdout } = await run(process.execPath, [example, url, freshName()], { cwd })
    expect(stdout.trim().split('\n')).toEqual([
      'an order for -42 of acme: rejected',
      'orders has a letter: parked, rejected',
      'an order for 42 of acme: charged',
      'the letter is resolved',
    ])
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
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

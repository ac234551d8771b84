import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { aFolder } from '../folders.ts'
import { run } from '../processes.ts'
import { escapeName } from '../../src/backends/kafka/topics.ts'
import { backend, freshName } from '../servers/servers.ts'

const cwd = aFolder('redrive-example')

const root = join(import.meta.dirname, '../..')
const example = join(root, 'examples/pipeline.ts')
const { url, missing } = backend('kafka')

it.skipIf(missing)(
  'a document that failed while its module was unreachable is returned and indexed',
  { timeout: 60_000 },
  async () => {
    const cluster = freshName().replaceAll('_', '-')
    expect(escapeName(cluster, 100)).toBe(cluster)
    const { stdout } = await run(process.execPath, [example, url, cluster], { cwd })
    expect(stdout.trim().split('\n')).toEqual([
      'after 3 calls parser has a letter: CONNECTION_REFUSED',
      'report-7 is indexed: ["nothing","is","lost"]',
      'the letter is resolved',
    ])
  },
)

it('the guide shows the code of the example', async () => {
  const code = await readFile(example, 'utf8')
  const guide = await readFile(join(root, 'docs/guides/pipelines.md'), 'utf8')
  const shown = [...guide.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, text]) => text!)
  expect(shown).toHaveLength(2)
  const lines = shown.flatMap((text) => text.split('\n')).filter((line) => line.trim() !== '')
  const known = code.replaceAll("'../src/pipeline/index.ts'", "'redrive/pipeline'")
  for (const line of lines) if (!line.includes('import')) expect(known).toContain(line.trim())
})

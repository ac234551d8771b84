import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { escapeName } from '../../src/backends/kafka/topics.ts'
import { backend, freshName } from '../servers/servers.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const example = join(root, 'examples/pipeline.ts')
const { url, missing } = backend('kafka')

it.skipIf(missing)(
  'a document that failed while its module was unreachable is returned and indexed',
  { timeout: 60_000 },
  async () => {
    const cwd = await mkdtemp(join(tmpdir(), 'redrive-example-'))
    try {
      const cluster = freshName().replaceAll('_', '-')
      expect(escapeName(cluster, 100)).toBe(cluster)
      const { stdout } = await run(process.execPath, [example, url, cluster], { cwd })
      expect(stdout.trim().split('\n')).toEqual([
        'after 3 calls parser has a letter: CONNECTION_REFUSED',
        'report-7 is indexed: ["nothing","is","lost"]',
        'the letter is resolved',
      ])
    } finally {
      await rm(cwd, { recursive: true, force: true })
    }
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

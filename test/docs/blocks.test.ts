import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fork, run, type ChildProcess } from '../processes.ts'
import { backend } from '../servers/servers.ts'
import { examplesFor } from '../../web/src/format/examples.ts'
import { readBlocks, type Block } from './blocks.ts'
import type { BlockResult, BlockToRun } from './run-blocks.ts'

const root = join(import.meta.dirname, '../..')

// Inside the package, so that `redrive` resolves by name; hidden, so that no other tool reads it.
const folder = mkdtempSync(join(root, 'test/.blocks-'))

/** The examples that the dashboard shows. */
const examples: Block[] = examplesFor('http://127.0.0.1:7433')
  .filter(({ language }) => language === 'ts')
  .map(({ code }, index) => ({ page: 'dashboard', line: 1, number: index + 1, code }))

const blocks = [...readBlocks('ts'), ...examples]
const nameOf = ({ page, number }: Block): string => `${page} ${number}`
const fileOf = ({ page, number }: Block): string =>
  join(folder, `${page.replaceAll(/[/.]/g, '-')}-${number}.ts`)

const followed = 'getting-started.test.ts follows the page'

/** Blocks that are compiled but not run, and why. */
const notRun = new Map([
  ['docs/getting-started.md 1', followed],
  ['docs/getting-started.md 2', followed],
  ['docs/getting-started.md 3', followed],
  [
    'docs/guides/loops.md 1',
    'runs until SIGTERM; examples/redis-loop.ts is the same program, and is run',
  ],
  [
    'docs/guides/foreign-letters.md 1',
    'examples/foreign-letters.ts is the same program, and is run',
  ],
  ['docs/guides/foreign-letters.md 2', 'needs a connection of the reader to Redis'],
  ['docs/guides/foreign-letters.md 3', 'needs an instance of pg-boss with a queue of the reader'],
  ['docs/guides/alerts.md 2', 'needs a request with a signature'],
  ['docs/guides/web-frameworks.md 2', 'needs Express'],
  ['docs/guides/web-frameworks.md 4', 'needs NestJS'],
  ['docs/migrating/bullmq.md 1', 'needs a connection of the reader to Redis'],
  ['docs/migrating/pg-boss.md 1', 'needs an instance of pg-boss with a queue of the reader'],
  ['docs/migrating/sqs.md 1', 'needs an account at AWS'],
  ['docs/migrating/rabbitmq.md 1', 'needs a queue of the reader'],
  ['docs/operating/serverless.md 2', 'needs a running server'],
  ['dashboard 1', 'needs a running server'],
  ['docs/guides/http-api.md 1', 'needs a running server'],
  ['docs/guides/live-feed.md 1', 'needs a running server'],
  ['docs/guides/pipelines.md 1', 'examples/pipeline.ts is the same program, and is run'],
  ['docs/guides/pipelines.md 2', 'needs the pipeline of the block before it'],
  ['docs/guides/metrics.md 1', 'serves on a port until it is stopped'],
  ['docs/operating/pipeline-alerts.md 1', 'needs a running pipeline'],
  ['docs/operating/pipeline-alerts.md 2', 'needs a running pipeline'],
  ['docs/operating/test-servers.md 1', 'is a test; the tests of drivers look like it'],
  ['docs/operating/postgres.md 1', 'needs a transaction of the reader on Postgres'],
  ['docs/operating/redis.md 1', 'needs a Redis with a replica'],
  ['docs/operating/spool.md 1', 'writes to /var/lib'],
  ['docs/operating/postgres.md 2', 'drops months of a table that does not exist'],
  ['docs/operating/mailboxes/sqs.md 1', 'needs an account at AWS'],
  ['docs/operating/mailboxes/sqs.md 2', 'needs an account at AWS'],
  ['docs/operating/mailboxes/sqs.md 3', 'needs an account at AWS'],
  ['docs/operating/mailboxes/nats.md 2', 'needs a stream and a consumer of the reader'],
  ['docs/operating/mailboxes/kafka.md 2', 'needs a broker with topics of the reader'],
  ['docs/operating/mailboxes/rabbitmq.md 2', 'needs a queue of the reader'],
])

/** Replaces the addresses in the pages by the servers of the test suite. */
const servers: [pattern: RegExp, name: string][] = [
  [/postgres:\/\/[^'#?]*/g, 'postgres'],
  [/redis:\/\/[^'#?]*/g, 'redis'],
  [/opensearch:\/\/[^'#?]*/g, 'opensearch'],
  [/amqp:\/\/[^'#?]*/g, 'rabbitmq'],
  [/nats:\/\/[^'#?]*/g, 'nats'],
  [/kafka:\/\/[^'#?]*/g, 'kafka'],
]

/** The code with addresses that exist here, or the name of the server that is missing. */
function localize(code: string): { code: string } | { missing: string } {
  for (const [pattern, name] of servers) {
    if (code.search(pattern) < 0) continue
    const { url, missing } = backend(name as Parameters<typeof backend>[0])
    if (missing) return { missing: name }
    const scheme = /^\/(\w+):/.exec(String(pattern))![1]!
    code = code.replaceAll(
      pattern,
      url.includes('://') ? url.replace(/^\w+:/, `${scheme}:`) : `${scheme}://${url}`,
    )
  }
  return { code }
}

beforeAll(() => {
  for (const block of blocks) writeFileSync(fileOf(block), `${block.code}\nexport {}\n`)
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: '../../tsconfig.json',
      // `redrive/api` is the built package, as for readers, and not our source.
      compilerOptions: { noUnusedLocals: false, noUnusedParameters: false, paths: {} },
      // Without it, the whole project would be checked again.
      include: [],
      files: [
        ...blocks.map(fileOf),
        join(root, 'test/docs/reader.ts'),
        join(root, 'test/docs/frameworks.d.ts'),
      ],
    }),
  )
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the code blocks of README.md, docs/ and the dashboard', () => {
  it('compile as they are, with Redrive imported by its name', { timeout: 600_000 }, async () => {
    const tsc = join(root, 'node_modules/.bin/tsc')
    const args = ['-p', join(folder, 'tsconfig.json'), '--noEmit']
    const output = await run(tsc, args, { cwd: root }).then(
      () => '',
      ({ stdout }: { stdout: string }) => stdout,
    )
    expect(output.split('\n').filter((line) => line.includes('error'))).toEqual([])
  })

  it('run, or have a reason not to', () => {
    const names = blocks.map(nameOf)
    expect([...notRun.keys()].filter((name) => !names.includes(name))).toEqual([])
  })

  const toRun = blocks
    .filter((block) => !notRun.has(nameOf(block)))
    .map((block) => [nameOf(block), block] as const)

  it.for(toRun)('%s runs', async ([, block], context) => {
    const local = localize(block.code)
    if ('missing' in local) return context.skip(`${local.missing} is missing`)
    const cwd = mkdtempSync(join(folder, 'cwd-'))
    const file = join(cwd, 'block.ts')
    writeFileSync(file, `${local.code}\nexport {}\n`)
    // The blocks of the README run as programs, without declarations of the reader.
    if (block.page !== 'README.md') return runBlock({ file, folder: cwd })
    writeFileSync(file, `${local.code}\nprocess.exit(0)\n`)
    await run(process.execPath, [file], { cwd, timeout: 50_000 })
  })
})

/** The process that has run the blocks before. */
let runner: ChildProcess | undefined
afterAll(() => endRunner())

function endRunner(): void {
  runner?.kill('SIGKILL')
  runner = undefined
}

/**
 * Blocks share a process, since most of their time is the start of Node. What counts is that a
 * block runs alone: one that fails after others is repeated in a new process.
 */
async function runBlock(block: BlockToRun): Promise<void> {
  const others = runner
  const error = await errorOf(block)
  if (error === undefined) return
  endRunner()
  const own = others ? await errorOf(block) : error
  if (own === undefined) return
  endRunner()
  throw new Error(own)
}

async function errorOf(block: BlockToRun): Promise<string | undefined> {
  const program = join(import.meta.dirname, 'run-blocks.ts')
  runner ??= fork(program, [], { execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  const waiting = new AbortController()
  const signal = AbortSignal.any([waiting.signal, AbortSignal.timeout(25_000)])
  const answered = once(runner, 'message', { signal })
  const ended = once(runner, 'exit', { signal }).then(() => [{ error: 'the process has ended' }])
  runner.send(block)
  try {
    const [{ error }] = (await Promise.race([answered, ended])) as [BlockResult]
    return error
  } catch {
    return 'the block does not end'
  } finally {
    waiting.abort()
  }
}

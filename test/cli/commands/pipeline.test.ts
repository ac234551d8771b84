import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { formatStatus, formatSummary } from '../../../src/cli/commands/pipeline.ts'
import { RedriveError } from '../../../src/errors.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { toNodeStatus, type NodeStatus } from '../../../src/pipeline/admin.ts'
import type { ReplayReport } from '../../../src/pipeline/replay/options.ts'
import { deadBench, type DeadBench } from '../../pipeline/dead-records.ts'
import { backend } from '../../servers/servers.ts'
import { spawn } from '../../processes.ts'
import { aFolder, main, plainEnv, redrive, type Ran } from '../run-cli.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)('redrive pipeline', { timeout: 60_000 }, () => {
  const folder = aFolder()
  let bench: DeadBench
  let config: string

  beforeEach(async () => {
    bench = await deadBench(url, { graph: 'docs' })
    config = join(folder, `${bench.name}.yaml`)
    const { inputTopic, dlq } = bench.settings
    const graph = `
cluster_id: ${bench.name}
kafka: kafka://${url}
graphs:
  - graph_id: docs
    nodes:
      - node_id: node-1
        name: parser
        kafka_input_topic: ${inputTopic}
        module: { function: parse }
        dlq_config: { topic: ${dlq.topic} }
`
    writeFileSync(config, graph)
  })

  afterEach(() => bench.close())

  const run = (...args: string[]): Promise<Ran> =>
    redrive(['pipeline', ...args, '--config', config])

  it('replays a node, and prints the outcome of its records', async () => {
    await bench.dies([
      { id: 'a', offset: 1 },
      { id: 'b', offset: 2, errorType: 'MODULE_UNAVAILABLE' },
    ])
    const dry = await run('replay', 'parser', '--dry-run')
    expect(dry.out).toContain('2 records would be returned.')
    const some = await run('replay', 'parser', '--filter', 'error_type=TIMEOUT')
    expect(some.out).toContain('1 record returned.\n1 record skipped')
    expect(some.exit).toBe(0)
    const rest = await run('replay', 'node-1', '--json', '--rate', '1000', '--limit', '5')
    expect(JSON.parse(rest.out)).toMatchObject({ sent: 1, passed: 1, done: true })
    expect(await bench.read(bench.settings.inputTopic)).toHaveLength(2)
  })

  it('stops on SIGINT, and continues in the next run', async () => {
    const all = Array.from({ length: 200 }, (_, n) => ({ id: `s${n}`, key: `k${n}`, offset: n }))
    await bench.dies(all)
    const sent = async (): Promise<number> => (await bench.read(bench.settings.inputTopic)).length
    const args = ['pipeline', 'replay', 'parser', '--config', config]
    const child = spawn(process.execPath, [main, ...args, '--rate', '20'], { env: plainEnv })
    const exited = once(child, 'close')
    const out = text(child.stdout)
    await expect.poll(sent).toBeGreaterThan(0)
    child.kill('SIGINT')
    expect(await exited).toEqual([130, null])
    expect(await out).toContain('Stopped. Run the same command again to continue.')
    expect(await sent()).toBeLessThan(200)
    expect((await run('replay', 'parser')).out).toContain('200 records returned.')
    expect(await sent()).toBe(200)
  })

  it('reports that a replay with the same id was already completed', async () => {
    await bench.dies([{ id: 'a', offset: 1 }])
    const first = await run('replay', 'parser', '--id', 'nightly')
    expect(first.out).not.toContain('before: nothing was sent now')
    await bench.dies([{ id: 'b', offset: 2 }])
    const second = await run('replay', 'parser', '--id', 'nightly')
    expect(second.out).toContain(
      '1 record returned.\nCompleted before: nothing was sent. Use another --id for a new replay.\n',
    )
    expect(await bench.read(bench.settings.inputTopic)).toHaveLength(1)
  })

  it('counts the dead records that are left', async () => {
    await bench.dies([
      { id: 'a', offset: 1 },
      { id: 'b', offset: 2 },
    ])
    await run('replay', 'parser', '--limit', '1')
    const { out } = await run('status', '--json')
    expect(JSON.parse(out)).toMatchObject([{ node: 'node-1', depth: 1, quarantined: 0 }])
    expect((await run('status')).out).toMatch(/NODE +DEAD +OLDEST +QUARANTINED\nparser +1 /)
  })

  it('names the invalid argument', async () => {
    const wrong = async (...args: string[]): Promise<string> => {
      const { err, exit } = await run(...args)
      expect(exit).toBe(2)
      return err
    }
    expect(await wrong('replay', 'parsr')).toContain('did you mean parser?')
    expect(await wrong('replay', 'something-else')).toContain(': known: node-1 (parser)')
    expect(await wrong('replay', 'parser', '--filter', 'type=x')).toContain('unknown filter')
    expect(await wrong('replay', 'parser', '--limit', 'many')).toContain(
      'limit must be a whole number',
    )
    expect(await wrong('replay', 'parser', '--id', '')).toContain('--id is empty')
    const { err } = await redrive(['pipeline', 'status', '--config', join(folder, 'none.yaml')])
    expect(err).toContain('cannot be read')
  })
})

describe('output of redrive pipeline', () => {
  const report: ReplayReport = {
    id: 'abc',
    sent: 1200,
    quarantined: 3,
    passed: 4,
    left: 1,
    positions: [5],
    ends: [9],
    startedAt: '',
    done: false,
    request: '',
    dryRun: false,
  }
  const dlq = { topic: `dlq.prod.${'x'.repeat(90)}`, maxReprocessCount: 3 }

  it('fits 80 columns, and prints how to continue', () => {
    const lines = formatSummary({ name: 'parser', dlq: dlq as never }, report, 80)
    expect(lines.filter(({ length }) => length > 80)).toEqual([])
    expect(lines.slice(1)).toEqual([
      '1,200 records returned.',
      '3 records quarantined: replayed 3 times already.',
      '4 records skipped: not matched, or replayed or erased before.',
      '1 record left: not returnable unchanged.',
      'Stopped. Run the same command again to continue.',
      'Replay abc',
    ])
  })

  it('prints the reason when only the quarantine cannot be read', () => {
    const place = { graph: 'g', node: 'n', name: 'parser', cluster: 'c', topic: 't' }
    const error = new RedriveError('STORE_UNAVAILABLE', 'not authorized')
    const row = toNodeStatus(place, { ...place, depth: 2, oldestMs: 0 }, { ...place, error })
    expect(row).toMatchObject({ depth: 2, quarantined: null, problem: 'not authorized' })
    expect(row.oldestAt).toBe('1970-01-01T00:00:00.000Z')
    expect(formatStatus([row], 0, 80).at(-1)).toBe('parser: not authorized')
  })

  it('prints a node whose depth is unknown, with the reason', () => {
    const row: NodeStatus = {
      graph: 'g',
      node: 'n',
      name: 'a node with a name that is longer than any line of a terminal could ever be, really',
      depth: null,
      oldestAt: null,
      quarantined: 0,
      problem: 'the cluster failed',
    }
    const lines = formatStatus(
      [row, { ...row, depth: 12_000, oldestAt: toTimestamp(0) }],
      3_600_000,
      80,
    )
    expect(lines.filter(({ length }) => length > 80)).toEqual([])
    expect(lines.join('\n')).toMatch(/\?.*-.*0\n.*12,000.*1 h/)
  })
})

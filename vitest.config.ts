import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Many tests start processes of their own, and most of what those do is to read our modules.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/compiled')

// Processes of this run are found by this name, also after their parent has ended.
process.env['REDRIVE_TEST_RUN'] ??= `${process.pid}-${Date.now()}`

/** Those that start servers and many processes of their own, the longest first. */
const heavy = [
  'test/stores/opensearch/opensearch.test.ts',
  'test/crash/pipeline.test.ts',
  'test/crash/crash.test.ts',
  'test/crash/mailbox.test.ts',
  'test/web/flows.test.ts',
  'test/stores/postgres/postgres.test.ts',
  'test/cli/commands/serve.test.ts',
  'test/web/bulk-actions.test.ts',
  'test/web/pages.test.ts',
  'test/stores/postgres/partitioned.test.ts',
  'test/web/hostile.test.ts',
  'test/crash/server.test.ts',
  'test/crash/bulk.test.ts',
  'test/web/letter-list.test.ts',
  'test/servers/private-brokers.test.ts',
  'test/mailboxes/nats/outage.test.ts',
  'test/transfer/copy/copy.test.ts',
  'test/server/attacks/every-endpoint.test.ts',
  'test/server/attacks/connections.test.ts',
  'test/mailboxes/sqs/contract.test.ts',
  'test/pipeline/replay/replay.test.ts',
  'test/taps/nats.test.ts',
  'test/server/documentation.test.ts',
]

/** The heavy ones evenly among the others, so that they seldom meet, and none of them begins when all others are done. */
class Spread extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification): number =>
      heavy.findIndex((name) => moduleId.endsWith(name))
    const sorted = files.toSorted((a, b) => a.moduleId.localeCompare(b.moduleId))
    const others = sorted.filter((file) => rankOf(file) < 0)
    const ours = sorted.filter((file) => rankOf(file) >= 0)
    const step = Math.floor((others.length * 0.8) / Math.max(1, ours.length))
    for (const [at, file] of ours.toSorted((a, b) => rankOf(a) - rankOf(b)).entries())
      others.splice(at * (step + 1), 0, file)
    return others
  }
}

export default defineConfig({
  // The dashboard imports the API by this name.
  resolve: { alias: { 'redrive/api': join(import.meta.dirname, 'src/api/index.ts') } },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/run-folder.ts'],
    setupFiles: ['test/leaks.ts'],
    pool: 'forks',
    // A worker runs many files, so that it loads each module once.
    isolate: false,
    sequence: { sequencer: Spread },
    // Most tests wait for servers, so that there may be one more at a time than there are cores.
    maxWorkers: availableParallelism() + 1,
    // These end what hangs. A busy machine may be slow.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
  },
})

import { describe, expect, it } from 'vitest'
import { fromEnvironment } from '../../src/config/environment.ts'
import { formatProblem } from '../../src/config/problems.ts'

const files: Record<string, string> = { '/run/size': '500\n', '/run/empty': '\n' }

function read(path: string): string {
  const text = files[path]
  if (text === undefined) throw new Error(`no ${path}`)
  return text
}

const from = (env: Record<string, string>) => fromEnvironment(env, read)
const problems = (env: Record<string, string>): string[] => from(env).problems.map(formatProblem)

describe('fromEnvironment', () => {
  it('parses numbers, flags, strings, durations and maps by the type of the key', () => {
    const { layer } = from({
      REDRIVE_MAX_RETRIES: '5',
      REDRIVE_DLQ_ENABLED: 'false',
      REDRIVE_WORKER: '007',
      REDRIVE_LEASE_MS: '30s',
      REDRIVE_BREAKER: 'false',
      REDRIVE_BUDGET__PER_SECOND: '0.5',
      REDRIVE_RULES: '[{"name": "a"}]',
      PATH: '/bin',
    })
    expect(layer.value).toEqual({
      maxRetries: 5,
      dlq_enabled: false,
      worker: '007',
      leaseMs: '30s',
      breaker: false,
      budget: { perSecond: 0.5 },
      rules: [{ name: 'a' }],
    })
  })

  it('reads a value from the file named by a _FILE variable', () => {
    expect(from({ REDRIVE_DLQ_MAX_SIZE_FILE: '/run/size' }).layer.value).toEqual({
      dlq_max_size: 500,
    })
  })

  it.each<[Record<string, string>, string]>([
    [
      { REDRIVE_MAX_RETIRES: '1' },
      'REDRIVE_MAX_RETIRES: unknown variable; did you mean REDRIVE_MAX_RETRIES?',
    ],
    [{ REDRIVE_BREAKER__FAILURE: '1' }, 'did you mean REDRIVE_BREAKER__FAILURES?'],
    [
      { REDRIVE_QUITE_ANOTHER_THING: '1' },
      'REDRIVE_QUITE_ANOTHER_THING: unknown variable; redrive config schema prints all keys',
    ],
    [{ REDRIVE_QUEUE: 'mail' }, 'did you mean REDRIVE_QUEUES?'],
    [{ REDRIVE_MAX_RETRIES: '' }, 'maxRetries (REDRIVE_MAX_RETRIES): is empty'],
    [
      { REDRIVE_STORE: 'a', REDRIVE_STORE_FILE: '/run/size' },
      'store (REDRIVE_STORE_FILE): is set together with REDRIVE_STORE',
    ],
    [
      { REDRIVE_STORE_FILE: '/run/none' },
      'store (REDRIVE_STORE_FILE): names a file that cannot be read',
    ],
    [{ REDRIVE_STORE_FILE: '/run/empty' }, 'store (REDRIVE_STORE_FILE): names an empty file'],
  ])('refuses %j', (env, problem) => {
    expect(problems(env)).toEqual([expect.stringContaining(problem) as string])
  })

  it('ignores variables of platforms, tests and our own commands', () => {
    expect(
      problems({
        REDRIVE_SERVICE_HOST: '10.0.0.1',
        REDRIVE_SERVICE_PORT: '80',
        REDRIVE_SERVICE_PORT_HTTP: '80',
        REDRIVE_PORT: 'tcp://10.0.0.1:80',
        REDRIVE_PORT_80_TCP_ADDR: '10.0.0.1',
        REDRIVE_REQUIRE_BACKENDS: '1',
        REDRIVE_TEST_POSTGRES_URL: 'x',
        REDRIVE_LETTER_ID: 'x',
        REDRIVE_QUEUE: 'x',
        REDRIVE_CONFIG: 'a.yaml',
      }),
    ).toEqual([])
  })
})

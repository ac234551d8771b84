import { describe, expect, it } from 'vitest'
import { examineConfig, loadConfig, type Config } from '../../src/config/load.ts'
import { formatProblem } from '../../src/config/problems.ts'
import { exponential, linear } from '../../src/policy/backoff.ts'

const sources = (text: string) => ({ env: {}, read: () => text })
const load = (text: string): Config => loadConfig(sources(text))

describe('the settings of the workflow design', () => {
  it('map to queue options', () => {
    const config = load(`
dlq_enabled: true
dlq_max_size: 500
dlq_default_retry_policy: linear
dlq_default_max_retries: 7
dlq_retry_processor_enabled: true
dlq_retry_interval_seconds: 30
`)
    expect(config.options).toEqual({
      maxItems: 500,
      backoff: linear(),
      maxRetries: 7,
      pollMs: 30_000,
      capture: true,
      redeliver: true,
    })
  })

  it('have their own defaults with dlq_enabled', () => {
    expect(load('dlq_enabled: true').options).toEqual({
      maxItems: 10_000,
      backoff: exponential(),
      maxRetries: 3,
      pollMs: 60_000,
      capture: true,
      redeliver: true,
    })
    expect(load('dlq_enabled: true\nmaxItems: 5').options.maxItems).toBe(5)
  })

  it('change only their own option without dlq_enabled', () => {
    expect(load('dlq_max_size: 100').options).toEqual({ maxItems: 100 })
    expect(load('dlq_retry_processor_enabled: false').options).toEqual({ redeliver: false })
  })

  it('disable capture and redelivery with dlq_enabled: false', () => {
    expect(load('dlq_enabled: false').options).toEqual({ capture: false, redeliver: false })
    const both = load('dlq_enabled: false\ndlq_retry_processor_enabled: true')
    expect(both.options).toEqual({ capture: false, redeliver: false })
  })

  it('may be combined with the equivalent option only if both values are equal', () => {
    expect(load('dlq_max_size: 500\nmaxItems: 500').options.maxItems).toBe(500)
    expect(load('dlq_retry_interval_seconds: 60\npollMs: 1m').options.pollMs).toBe(60_000)
    expect(
      load('dlq_default_retry_policy: linear\nbackoff: { kind: linear, stepMs: 5m }').options
        .backoff,
    ).toEqual(linear())
    const examined = examineConfig(
      sources(
        'dlq_max_size: 500\nmaxItems: 501\ndlq_default_retry_policy: linear\nbackoff: never\ndlq_default_max_retries: 1\nmaxRetries: 2\ndlq_retry_interval_seconds: 60\npollMs: 60',
      ),
    )
    expect('problems' in examined ? examined.problems.map(formatProblem) : []).toEqual([
      'dlq_max_size (redrive.yaml:1): contradicts maxItems (redrive.yaml:2): set only one of them',
      'dlq_default_retry_policy (redrive.yaml:3): contradicts backoff (redrive.yaml:4): set only one of them',
      'dlq_default_max_retries (redrive.yaml:5): contradicts maxRetries (redrive.yaml:6): set only one of them',
      'dlq_retry_interval_seconds (redrive.yaml:7): contradicts pollMs (redrive.yaml:8): set only one of them',
    ])
  })

  it('are listed under the resulting option, with their origin', () => {
    const { settings } = load('dlq_enabled: true\ndlq_max_size: 500')
    expect(settings).toContainEqual({
      key: 'maxItems',
      value: 500,
      from: 'dlq_max_size, redrive.yaml:2',
    })
    expect(settings).toContainEqual({
      key: 'pollMs',
      value: 60_000,
      from: 'dlq_enabled, redrive.yaml:1',
    })
  })
})

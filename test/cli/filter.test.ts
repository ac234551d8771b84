import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import {
  addFilterOptions,
  readFilter,
  readLimit,
  type FilterOptions,
} from '../../src/cli/filter.ts'

const nowMs = Date.UTC(2026, 0, 10)

function filterOf(...args: string[]) {
  const command = addFilterOptions(new Command()).exitOverride()
  return readFilter(command.parse(args, { from: 'user' }).opts<FilterOptions>(), nowMs)
}

describe('readFilter', () => {
  it.each([
    [[], {}],
    [['--queue', 'a,b', '-q', 'c'], { queue: ['a,b', 'c'] }],
    [
      ['--state', 'parked,Exhausted', '-s', 'pending'],
      { state: ['parked', 'exhausted', 'pending'] },
    ],
    [['--category', 'rate-limit'], { category: ['rate-limit'] }],
    [['--priority', 'high'], { priority: ['high'] }],
    [['--group', 'v1-a', '--tag', 't', '--text', 'x'], { group: 'v1-a', tag: 't', text: 'x' }],
    [['--source-id', 'wf_abc123'], { sourceId: 'wf_abc123' }],
    [['--metadata', 'customer=x', '--metadata', 'n=5'], { metadata: { customer: 'x', n: 5 } }],
    [['--metadata', 'zip="01234"'], { metadata: { zip: '01234' } }],
    [['--metadata', 'a={"b":1}'], { metadata: { a: '{"b":1}' } }],
    [['--metadata', 'equation=x=y'], { metadata: { equation: 'x=y' } }],
    [['--since', '2h'], { since: '2026-01-09T22:00:00.000Z' }],
    [['--since', '15 min'], { since: '2026-01-09T23:45:00.000Z' }],
    [['--until', '3d'], { until: '2026-01-07T00:00:00.000Z' }],
    [['--since', '2026-01-01'], { since: '2026-01-01T00:00:00.000Z' }],
    [['--since', '2026-01-01T10:00:00+02:00'], { since: '2026-01-01T08:00:00.000Z' }],
  ])('reads %j', (args, filter) => {
    expect(filterOf(...args)).toEqual(filter)
  })

  it.each([
    [['--state', 'parkd'], 'unknown state "parkd": did you mean parked?'],
    [['--category', 'sunspots'], 'unknown category "sunspots": known: transient'],
    [['--state', 'queued'], 'unknown state "queued": did you mean pending?'],
    [
      ['--metadata', 'customer'],
      '--metadata must be a key and a value such as customer=x, got "customer"',
    ],
    [['--priority', ''], 'unknown priority ""'],
    [
      ['--since', 'yesterday'],
      '--since must be a duration such as 15m, 2h or 3d, or an ISO-8601 time such as 2026-01-31T09:30:00Z, got "yesterday"',
    ],
    [['--until', '5'], '--until must be a duration'],
    [['--since', '2026-13-45'], '--since must be a duration'],
  ])('rejects %j', (args, message) => {
    expect(() => filterOf(...args)).toThrowError(message)
  })
})

describe('readLimit', () => {
  it('accepts limits within the page size', () => {
    expect([readLimit('1'), readLimit('1000')]).toEqual([1, 1000])
    for (const text of ['0', '1001', '-1', '1e3', 'all'])
      expect(() => readLimit(text)).toThrowError('--limit')
  })
})

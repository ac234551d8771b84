import { describe, expect, it } from 'vitest'
import { peekEnvelope } from '../../../src/pipeline/replay/peek.ts'
import { matches, replayFilter } from '../../../src/pipeline/replay/filter.ts'
import { nodeSettings } from '../../../src/pipeline/graph/settings.ts'
import { putOf, type Dead } from '../dead-records.ts'

const settings = nodeSettings({ cluster: 'prod', node: 'n1', inputTopic: 'in' })
const dead = (more: Partial<Dead> = {}) =>
  peekEnvelope(putOf({ id: 's1', key: 'k1', offset: 1, ...more }, settings, 0).value)!

describe('replayFilter', () => {
  it('parses names and values', () => {
    const strings = ['error_type=timeout, CRASH_LOOP', 'message=a=b', 'key=k1', 'stream_id=s1']
    expect(replayFilter(strings)).toEqual({
      errorTypes: ['TIMEOUT', 'CRASH_LOOP'],
      message: 'a=b',
      key: 'k1',
      streamId: 's1',
    })
    expect(replayFilter(['since=2026-01-01', 'until=2026-01-02T00:00:00Z'])).toEqual({
      sinceMs: Date.UTC(2026, 0, 1),
      untilMs: Date.UTC(2026, 0, 2),
    })
    expect(replayFilter([])).toEqual({})
  })

  it.each([
    ['TIMEOUT', /write name=value/],
    ['=x', /write name=value/],
    ['key=', /write name=value/],
    [`key=${'x'.repeat(1001)}`, /write name=value/],
    ['eror_type=x', /did you mean error_type/],
    ['constructor=x', /unknown filter/],
    ['since=yesterday', /must be a timestamp/],
  ])('refuses %s', (text, message) => {
    expect(() => replayFilter([text])).toThrow(message)
  })

  it('rejects a duplicate criterion', () => {
    expect(() => replayFilter(['key=a', 'key=b'])).toThrow(/given twice/)
  })
})

describe('matches', () => {
  it.each([
    [{}, true],
    [{ errorTypes: ['TIMEOUT'] }, true],
    [{ errorTypes: ['MAX_HOPS'] }, false],
    [{ message: 'TOO LONG' }, true],
    [{ message: 'too.*long' }, false],
    [{ sinceMs: Date.UTC(2026, 0, 2) }, true],
    [{ sinceMs: Date.UTC(2026, 0, 3) }, false],
    [{ untilMs: Date.UTC(2026, 0, 3) }, true],
    [{ untilMs: Date.UTC(2026, 0, 2) }, false],
    [{ key: 'k1' }, true],
    [{ key: 'k' }, false],
    [{ streamId: 's1' }, true],
    [{ streamId: 's2' }, false],
    [{ errorTypes: ['TIMEOUT'], streamId: 's2' }, false],
  ])('%o: %s', (filter, is) => {
    expect(matches(filter, dead())).toBe(is)
  })

  it('finds no stream in a record that is not one', () => {
    expect(matches({ streamId: 's1' }, dead({ isStream: false }))).toBe(false)
  })
})

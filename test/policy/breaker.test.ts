import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { categories, type ErrorCategory } from '../../src/letter/letter.ts'
import {
  admits,
  stepBreaker,
  closedBreaker,
  type BreakerEvent,
  type BreakerSettings,
  type BreakerState,
} from '../../src/policy/breaker.ts'

const settings: BreakerSettings = {
  failures: 3,
  share: 0.8,
  openMs: 1000,
  maxOpenMs: 3000,
  probes: 2,
  successes: 2,
  patienceMs: 10_000,
}

const failed = (letterId: string, atMs = 0, category: ErrorCategory = 'network'): BreakerEvent => ({
  type: 'failed',
  letterId,
  atMs,
  category,
})
const event = (
  type: 'started' | 'succeeded' | 'ended',
  letterId: string,
  atMs = 0,
): BreakerEvent => ({
  type,
  letterId,
  atMs,
})
const after = (
  events: readonly BreakerEvent[],
  start: BreakerState = closedBreaker,
): BreakerState => events.reduce((state, next) => stepBreaker(state, next, settings), start)

const open = after([failed('a'), failed('b'), failed('c', 500)])

describe('stepBreaker', () => {
  it.each<[string, string, BreakerState['kind']]>([
    ['one cause in a row', 'xxx', 'open'],
    ['several causes in a row', 'xyx', 'closed'],
    ['a cause that is not the last one', 'xxy', 'closed'],
    ['one cause after others', 'yzxxx', 'open'],
    ['one cause of too few letters', 'xSxxyx', 'closed'],
    ['most letters by one cause, though another failed differently', 'xxyxxx', 'open'],
    ['several causes, each with too few letters', 'xxyyxy', 'closed'],
  ])('with causes, depends on %s', (_rule, causes, kind) => {
    const events = causes
      .split('')
      .map((cause, n) =>
        cause === 'S' ? event('succeeded', `l${n}`) : { ...failed(`l${n}`), cause },
      )
    expect(after(events).kind).toBe(kind)
  })

  it('opens when enough different letters fail in a row', () => {
    expect(after([failed('a'), failed('b')]).kind).toBe('closed')
    expect(open).toEqual({ kind: 'open', untilMs: 1500, openings: 1 })
  })

  it('does not open for one letter that fails repeatedly', () => {
    expect(after(Array.from({ length: 100 }, () => failed('poison'))).kind).toBe('closed')
  })

  it('starts over after a success', () => {
    const events = [failed('a'), failed('b'), event('succeeded', 'c'), failed('a'), failed('b')]
    expect(after(events).kind).toBe('closed')
  })

  it('opens when most of twice as many letters failed, though some succeeded', () => {
    const mixed = ['a', 'b', 'S', 'c', 'd'].map((id) =>
      id === 'S' ? event('succeeded', id) : failed(id),
    )
    expect(after(mixed).kind).toBe('closed')
    expect(after([...mixed, failed('e')]).kind).toBe('open')
    expect(after([event('succeeded', 'T'), ...mixed, event('succeeded', 'e')]).kind).toBe('closed')
  })

  it('stays open twice as long after each probe that fails, up to a limit', () => {
    let state = open
    const stays: number[] = []
    for (let probe = 0; probe < 4; probe++) {
      const atMs = state.kind === 'open' ? state.untilMs : 0
      state = after([event('started', `p${probe}`, atMs), failed(`p${probe}`, atMs)], state)
      if (state.kind === 'open') stays.push(state.untilMs - atMs)
    }
    expect(stays).toEqual([2000, 3000, 3000, 3000])
  })

  it('stays open at least as long as the other side asks', () => {
    const limited: BreakerEvent = {
      type: 'failed',
      letterId: 'c',
      atMs: 500,
      category: 'rate-limit',
      retryAfterMs: 60_000,
    }
    expect(after([failed('a'), failed('b'), limited])).toMatchObject({ untilMs: 60_500 })
  })

  it('stays open at most a day, whatever the other side asks', () => {
    const limited: BreakerEvent = {
      ...failed('c', 500, 'rate-limit'),
      type: 'failed',
      category: 'rate-limit',
      retryAfterMs: 30 * 86_400_000,
    }
    expect(after([failed('a'), failed('b'), limited])).toMatchObject({ untilMs: 86_400_500 })
  })

  it('counts failures of a dependency, not those that the letter causes', () => {
    const opened = categories.filter(
      (category) => after(['a', 'b', 'c'].map((id) => failed(id, 0, category))).kind === 'open',
    )
    expect(opened).toEqual([
      'transient',
      'network',
      'timeout',
      'rate-limit',
      'resource',
      'dependency',
      'unknown',
    ])
  })

  it('ignores letters that cause their own failure or did not run', () => {
    const events = [
      failed('a'),
      failed('x', 0, 'validation'),
      failed('b'),
      event('ended', 'y'),
      failed('c'),
    ]
    expect(after(events).kind).toBe('open')
  })

  it('stays open for late results of letters that started before', () => {
    expect(
      after([event('succeeded', 'd', 600), failed('e', 700), event('ended', 'f', 800)], open),
    ).toBe(open)
    expect(after([event('started', 'g', 1499)], open)).toBe(open)
  })

  it('lets probes run after its open time', () => {
    const half = after([event('started', 'p', 1500)], open)
    expect(half).toEqual({
      kind: 'half-open',
      probing: ['p'],
      succeeded: 0,
      openings: 1,
    })
  })

  it('learns only from its probes while it is half-open', () => {
    const half = after([event('started', 'p', 1500)], open)
    for (const late of [
      failed('d', 1600),
      event('succeeded', 'e', 1600),
      event('ended', 'f', 1600),
    ])
      expect(after([late], half)).toEqual(half)
  })

  it('closes when enough probes succeed', () => {
    const one = after([event('started', 'p', 1500), event('succeeded', 'p', 1600)], open)
    expect(one).toEqual({ kind: 'half-open', probing: [], succeeded: 1, openings: 1 })
    expect(after([event('started', 'q', 1700), event('succeeded', 'q', 1800)], one)).toEqual(
      closedBreaker,
    )
  })

  it('opens again when a probe fails, and resets the successful probes', () => {
    const events = [
      event('started', 'p', 1500),
      event('succeeded', 'p', 1600),
      event('started', 'q', 1600),
      failed('q', 1700),
    ]
    const again = after(events, open)
    expect(again).toEqual({ kind: 'open', untilMs: 3700, openings: 2 })
    expect(after([event('started', 'r', 3700), event('succeeded', 'r', 3800)], again).kind).toBe(
      'half-open',
    )
  })

  it('ignores a probe that caused its own failure or was released, and admits another', () => {
    const half = after([event('started', 'p', 1500), failed('p', 1600, 'validation')], open)
    expect(half).toEqual({
      kind: 'half-open',
      probing: [],
      succeeded: 0,
      openings: 1,
    })
    expect(after([event('started', 'q', 1700), event('ended', 'q', 1800)], half)).toEqual(half)
  })

  it('opens after 10 letters for 30 s by default', () => {
    let state: BreakerState = closedBreaker
    for (let index = 0; index < 9; index++) state = stepBreaker(state, failed(`l${index}`, 5))
    expect(state.kind).toBe('closed')
    expect(stepBreaker(state, failed('last', 5))).toEqual({
      kind: 'open',
      untilMs: 30_005,
      openings: 1,
    })
  })

  it('does not change the state that it is given', () => {
    const a = Object.freeze({ letterId: 'a', failed: true })
    const state: BreakerState = Object.freeze({ kind: 'closed', recent: Object.freeze([a]) })
    const recent = [a, { letterId: 'b', failed: true }]
    expect(stepBreaker(state, failed('b'), settings)).toEqual({ kind: 'closed', recent })
  })
})

describe('admits', () => {
  it('admits all letters when closed, none when open, and then only probes', () => {
    expect(admits(closedBreaker, 0, settings)).toBe(Infinity)
    expect(admits(open, 1499, settings)).toBe(0)
    expect(admits(open, 1500, settings)).toBe(2)
    const half = after([event('started', 'p', 1500)], open)
    expect(admits(half, 1500, settings)).toBe(1)
    expect(admits(after([event('started', 'q', 1500)], half), 1500, settings)).toBe(0)
    expect(
      admits(after([event('started', 'q'), event('started', 'r')], half), 1500, settings),
    ).toBe(0)
  })

  it('never has more letters in flight than probes while half-open', () => {
    const steps = fc.array(
      fc.record({
        act: fc.constantFrom('start', 'succeed', 'fail', 'own fault', 'end'),
        pick: fc.nat(),
        passMs: fc.nat(1500),
      }),
      { maxLength: 200 },
    )
    const limits = fc.record({
      failures: fc.integer({ min: 1, max: 4 }),
      probes: fc.integer({ min: 1, max: 3 }),
      successes: fc.integer({ min: 1, max: 3 }),
    })
    fc.assert(
      fc.property(steps, limits, (acts, limit) => {
        const rules = { ...settings, ...limit }
        const running: string[] = []
        let [state, nowMs, ids]: [BreakerState, number, number] = [closedBreaker, 0, 0]
        let probes = new Set<string>()
        for (const { act, pick, passMs } of acts) {
          nowMs += passMs
          const before = state.kind
          if (act === 'start') {
            if (admits(state, nowMs, rules) < 1) continue
            const id = `l${ids++}`
            running.push(id)
            state = stepBreaker(state, event('started', id, nowMs), rules)
            if (state.kind === 'half-open') probes.add(id)
          } else {
            const [id] = running.splice(pick % Math.max(1, running.length), 1)
            if (id === undefined) continue
            probes.delete(id)
            const type = act === 'succeed' ? 'succeeded' : 'ended'
            if (act === 'fail') state = stepBreaker(state, failed(id, nowMs), rules)
            else if (act === 'own fault')
              state = stepBreaker(state, failed(id, nowMs, 'permanent'), rules)
            else state = stepBreaker(state, event(type, id, nowMs), rules)
          }
          if (before === 'half-open' && state.kind !== 'half-open') probes = new Set()
          expect(probes.size).toBeLessThanOrEqual(rules.probes)
          if (state.kind === 'half-open') expect(new Set(state.probing)).toEqual(probes)
          if (state.kind === 'closed')
            expect(
              state.recent.slice(-rules.failures).filter((one) => one.failed).length,
            ).toBeLessThan(rules.failures)
          expect(admits(state, nowMs, rules)).toBeGreaterThanOrEqual(0)
        }
      }),
    )
  })

  it('always admits a letter again after enough time with nothing in flight', () => {
    expect(admits(open, 1500)).toBe(1)
    expect(admits({ kind: 'half-open', probing: [], succeeded: 0, openings: 1 }, 0)).toBe(1)
  })
})

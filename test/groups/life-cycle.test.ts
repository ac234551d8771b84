import { describe, expect, it } from 'vitest'
import {
  act,
  afterFailures,
  recordMember,
  statusAt,
  untouched,
  type GroupAction,
  type GroupState,
} from '../../src/groups/life-cycle.ts'
import { mergeSeen, PendingGroup, type Seen } from '../../src/groups/seen.ts'
import { groupStatuses, type GroupStatus } from '../../src/letter/group.ts'
import { aLetter } from '../../src/testing/index.ts'

const before = '2026-01-04T09:00:00.000Z'
const at = '2026-01-04T10:00:00.000Z'
const later = '2026-01-04T10:30:00.000Z'
const actor = { at, by: 'ada' }

/** Failures at a time, one for each version; undefined: without a version. */
function seenAt(time: string, ...versions: (string | undefined)[]): Seen {
  const group = new PendingGroup()
  for (const version of versions.length > 0 ? versions : [undefined])
    group.add(
      aLetter({
        deadLetteredAt: time,
        app: { host: 'web-1', pid: 1, ...(version === undefined ? {} : { version }) },
      }),
    )
  return group.seen()
}

/** A group in a status, as people get it there. */
function inStatus(status: GroupStatus): GroupState {
  const resolved = act(untouched, { kind: 'resolve' }, actor)
  return {
    open: untouched,
    ignored: act(untouched, { kind: 'ignore', count: 1 }, actor),
    resolved,
    regressed: afterFailures(resolved, seenAt(later), seenAt(later), later),
  }[status]
}

type Event = 'resolve' | 'ignore' | 'reopen' | 'failure' | 'assign' | 'note' | 'merge'

const actions: Record<Exclude<Event, 'failure'>, GroupAction> = {
  resolve: { kind: 'resolve' },
  ignore: { kind: 'ignore' },
  reopen: { kind: 'reopen' },
  assign: { kind: 'assign', assignee: 'grace' },
  note: { kind: 'note', text: 'see the runbook' },
  merge: { kind: 'merge', into: 'f2' },
}

/** The failure comes after the last change, and passes the limit of the ignored group. */
const table: Record<GroupStatus, Record<Event, GroupStatus>> = {
  open: {
    resolve: 'resolved',
    ignore: 'ignored',
    reopen: 'open',
    failure: 'open',
    assign: 'open',
    note: 'open',
    merge: 'open',
  },
  ignored: {
    resolve: 'resolved',
    ignore: 'ignored',
    reopen: 'open',
    failure: 'open',
    assign: 'ignored',
    note: 'ignored',
    merge: 'ignored',
  },
  resolved: {
    resolve: 'resolved',
    ignore: 'ignored',
    reopen: 'open',
    failure: 'regressed',
    assign: 'resolved',
    note: 'resolved',
    merge: 'resolved',
  },
  regressed: {
    resolve: 'resolved',
    ignore: 'ignored',
    reopen: 'open',
    failure: 'regressed',
    assign: 'regressed',
    note: 'regressed',
    merge: 'regressed',
  },
}

describe('the life cycle of a group', () => {
  for (const status of groupStatuses)
    for (const [event, expected] of Object.entries(table[status]) as [Event, GroupStatus][])
      it(`${status} becomes ${expected} by ${event}`, () => {
        const group = inStatus(status)
        const next =
          event === 'failure'
            ? afterFailures(group, seenAt(later), seenAt(later), later)
            : act(group, actions[event], { at: later, by: 'grace' })
        expect(next.status).toBe(expected)
        if (next !== group)
          expect(next.history.at(-1)).toMatchObject({ at: later, from: status, to: expected })
      })
})

describe('act', () => {
  it('records who did what, and when', () => {
    const group = act(untouched, { kind: 'resolve', inVersion: '2.0.0' }, actor)
    expect(group).toEqual({
      status: 'resolved',
      resolved: { ...actor, inVersion: '2.0.0' },
      notes: [],
      history: [
        { ...actor, change: 'resolve', from: 'open', to: 'resolved', note: 'in version 2.0.0' },
      ],
    })
  })

  it('drops the details of a status that the group leaves', () => {
    const ignored = act(untouched, { kind: 'ignore', rate: 5 }, actor)
    expect(act(ignored, { kind: 'reopen' }, actor)).not.toHaveProperty('ignored')
    const resolved = act(ignored, { kind: 'resolve' }, actor)
    expect(resolved).not.toHaveProperty('ignored')
    expect(act(resolved, { kind: 'reopen' }, actor)).not.toHaveProperty('resolved')
  })

  it('assigns to a person or to nobody', () => {
    const assigned = act(untouched, { kind: 'assign', assignee: 'grace' }, actor)
    expect(assigned.assignee).toBe('grace')
    expect(act(assigned, { kind: 'assign', assignee: null }, actor)).not.toHaveProperty('assignee')
  })

  it('undoes a merge by a split', () => {
    const merged = act(untouched, { kind: 'merge', into: 'f2' }, actor)
    expect(merged.mergedInto).toBe('f2')
    const split = act(merged, { kind: 'split' }, actor)
    expect(split).not.toHaveProperty('mergedInto')
    expect(split.history.map(({ note }) => note)).toEqual(['into f2', 'from f2'])
    expect(recordMember(untouched, 'merge', 'f1', actor).history).toHaveLength(1)
  })

  it('bounds notes and history', () => {
    let group = untouched
    for (let n = 0; n < 150; n++) group = act(group, { kind: 'note', text: `${n}` }, actor)
    expect(group.notes.at(-1)).toEqual({ ...actor, text: '149' })
    expect([group.notes.length, group.history.length]).toEqual([100, 100])
  })
})

describe('an ignored group', () => {
  const ignore = (limits: object): GroupState =>
    act(untouched, { kind: 'ignore', ...limits }, actor)

  it('opens when its time has come, also without a failure', () => {
    const group = ignore({ until: later })
    expect([statusAt(group, at), statusAt(group, later)]).toEqual(['ignored', 'open'])
    expect(afterFailures(group, seenAt(later), seenAt(later), later).status).toBe('open')
  })

  it('opens after so many further failures', () => {
    let group = ignore({ count: 3 })
    for (const expected of ['ignored', 'ignored', 'open']) {
      group = afterFailures(group, seenAt(later), seenAt(later), later)
      expect(group.status).toBe(expected)
    }
    expect(group.history.at(-1)).toMatchObject({ by: 'letters', note: '3 more failures' })
  })

  it('opens at a rate per clock hour', () => {
    const group = ignore({ rate: 3 })
    const two = seenAt(later, 'a', 'b')
    expect(afterFailures(group, two, two, later).status).toBe('ignored')
    const one = seenAt(later, 'a')
    expect(afterFailures(group, one, mergeSeen(two, one), later).status).toBe('open')
    const lastHour = seenAt(before, 'a', 'b')
    expect(afterFailures(group, one, mergeSeen(lastHour, one), later).status).toBe('ignored')
  })

  it('stays so without limits, and for failures from before', () => {
    const forever = ignore({})
    expect(afterFailures(forever, seenAt(later), seenAt(later), later).status).toBe('ignored')
    const group = ignore({ count: 1 })
    expect(afterFailures(group, seenAt(before), seenAt(before), later)).toBe(group)
  })
})

describe('a resolved group', () => {
  const resolve = (inVersion?: string): GroupState =>
    act(untouched, { kind: 'resolve', ...(inVersion === undefined ? {} : { inVersion }) }, actor)

  it.each<[fixed: string | undefined, failed: string | undefined, status: GroupStatus]>([
    [undefined, undefined, 'regressed'],
    [undefined, '1.0.0', 'regressed'],
    ['2.0.0', '2.0.0', 'regressed'],
    ['2.0.0', '2.0.1', 'regressed'],
    ['2.0.0', '10.0.0', 'regressed'],
    ['2.0.0', '1.9.9', 'resolved'],
    ['2.0.0', '2.0.0-rc.1', 'resolved'],
    ['2.0.0', undefined, 'regressed'],
    ['build-7', 'build-7', 'regressed'],
  ])('in version %s is seen in version %s: %s', (fixed, failed, status) => {
    const fresh = seenAt(later, failed)
    expect(afterFailures(resolve(fixed), fresh, fresh, later).status).toBe(status)
  })

  it('regresses in a version that is not semver only if it was first seen after the fix', () => {
    const fresh = seenAt(later, 'build-8')
    expect(afterFailures(resolve('build-7'), fresh, fresh, later).status).toBe('regressed')
    const known = mergeSeen(seenAt(before, 'build-8'), fresh)
    expect(afterFailures(resolve('build-7'), fresh, known, later).status).toBe('resolved')
  })

  it('stays resolved after failures that were captured before', () => {
    const fresh = seenAt(before, '3.0.0')
    const group = resolve('2.0.0')
    expect(afterFailures(group, fresh, fresh, later)).toBe(group)
  })

  it('says in which version it was seen again', () => {
    const fresh = seenAt(later, '1.0.0', '2.1.0')
    const group = afterFailures(resolve('2.0.0'), fresh, fresh, later)
    expect(group.history.at(-1)).toMatchObject({ change: 'regress', note: 'in version 2.1.0' })
    expect(group.resolved).toMatchObject({ inVersion: '2.0.0' })
  })
})

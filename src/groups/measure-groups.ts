import { isOpen, states } from '../letter/letter.ts'
import { toMs } from '../letter/time.ts'
import type { GroupMeasures } from '../policy/alert-measures.ts'
import type { Store } from '../store.ts'
import { Merges } from './merges.ts'
import type { GroupRecords } from './records.ts'
import { countFailures, mergeSeen, type Seen } from './seen.ts'

const openStates = states.filter(isOpen)

/**
 * What alert rules need about groups: those that are new or regressed, and those in `alerted`. A
 * group that was merged into another one, and a group without any record, are left out.
 */
export async function measureGroups(
  store: Pick<Store, 'tally'>,
  records: GroupRecords,
  alerted: Iterable<string>,
  nowMs: number,
): Promise<Map<string, GroupMeasures>> {
  const [fresh, touched] = await Promise.all([records.newGroups(nowMs), records.states()])
  const merges = new Merges(touched)
  const regressed = [...touched].filter(([, { status }]) => status === 'regressed')
  const wanted = new Set([...fresh.keys(), ...regressed.map(([group]) => group), ...alerted])
  const groups = [...wanted].filter((group) => merges.rootOf(group) === group)
  if (groups.length === 0) return new Map()
  const members = new Map(groups.map((group) => [group, merges.membersOf(group)]))
  const all = [...members.values()].flat()
  const [seen, open] = await Promise.all([
    records.seen(all),
    store.tally('group', { group: all, state: openStates }),
  ])
  const measures = new Map<string, GroupMeasures>()
  for (const [group, fingerprints] of members) {
    const known = fingerprints.flatMap((one) => seen.get(one) ?? [])
    if (known.length === 0) continue
    const merged = known.reduce((sum, one) => mergeSeen(sum, one))
    const state = touched.get(group)
    measures.set(group, {
      ...describeSeen(merged),
      status: state?.status ?? 'open',
      // A group that a person has touched is known, also if its failures were forgotten.
      isNew: fresh.has(group) && !state,
      hasOpenLetters: fingerprints.some((one) => (open.get(one) ?? 0) > 0),
    })
  }
  return measures
}

function describeSeen(
  seen: Seen,
): Pick<GroupMeasures, 'failures' | 'firstMs' | 'queues' | 'errorName' | 'title'> {
  const { newest, firstAt, queues } = seen
  const { title } = newest
  return {
    failures: countFailures(seen),
    firstMs: toMs(firstAt),
    queues: queues.size === 0 ? [newest.queue] : [...queues.keys()],
    errorName: /^[\w.$-]{1,80}(?=:)/.exec(title)?.[0] ?? 'error',
    title,
  }
}

import type { FixCheck } from '../letter/replay-safety.ts'
import { untouched, type GroupState } from './life-cycle.ts'
import { Merges } from './merges.ts'
import type { GroupRecords } from './records.ts'
import { compareVersions } from './versions.ts'

/**
 * Creates checks whether letters may run again in this version of the application. Each check reads
 * all groups on first use, so that many letters cost one read.
 */
export function fixChecks(
  records: GroupRecords,
  version: string | undefined,
  rulesFor: (queue: string) => { requireFix: boolean },
): () => FixCheck {
  return () => {
    const required = new Map<string, boolean>()
    let reading: Promise<Map<string, GroupState>> | undefined
    let merges: Merges | undefined
    return async ({ queue, fingerprint }) => {
      const isRequired = required.get(queue) ?? rulesFor(queue).requireFix
      required.set(queue, isRequired)
      if (!isRequired) return undefined
      reading ??= records.states()
      const states = await reading
      merges ??= new Merges(states)
      return whyUnfixed(states.get(merges.rootOf(fingerprint)) ?? untouched, version ?? '')
    }
  }
}

/**
 * Why the cause of a group is not fixed in this version of the application. Undefined: it is. The
 * order of versions is semver; other versions count as fixed only if they are equal.
 */
export function whyUnfixed({ status, resolved }: GroupState, version: string): string | undefined {
  const fixedIn = resolved?.inVersion
  if (status === 'regressed' && fixedIn !== undefined)
    return `its group was resolved in ${fixedIn} and has regressed (option requireFix)`
  if (status !== 'resolved' || fixedIn === undefined)
    return 'its group is not resolved in a version yet (option requireFix)'
  if (version === fixedIn) return undefined
  const order = compareVersions(version, fixedIn)
  if (order !== undefined && order >= 0) return undefined
  const why = order === undefined ? ', and the order of these versions is unknown' : ''
  return `its group is fixed in ${fixedIn}, this application is ${version}${why} (option requireFix)`
}

import { checkKeys } from '../check/keys.ts'
import { checkBy } from '../check/text.ts'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type {
  FoundGroup,
  Group,
  GroupDetail,
  GroupExplanation,
  GroupQuery,
  IgnoreGroupOptions,
  LatestGroupChange,
  ResolveGroupOptions,
} from '../letter/group.ts'
import { states as letterStates } from '../letter/letter.ts'
import type { LetterFilter, Page } from '../letter/query.ts'
import { toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import type { FingerprintRule } from '../policy/fingerprint-rules.ts'
import { classify, type Rule } from '../policy/classify.ts'
import { explainFingerprint } from '../policy/fingerprint.ts'
import type { Store } from '../store.ts'
import {
  checkFingerprint,
  checkFingerprints,
  readAssign,
  readGroupQuery,
  readIgnore,
  readNote,
  readResolve,
  readWithin,
} from './group-query.ts'
import {
  act,
  recordMember,
  statusAt,
  untouched,
  type Actor,
  type GroupAction,
  type GroupState,
} from './life-cycle.ts'
import { Merges } from './merges.ts'
import { Ranking } from './ranking.ts'
import type { GroupRecords } from './records.ts'
import {
  facetsOf,
  growthOf,
  lastDayOf,
  mergeSeen,
  seenOf,
  seenQueues,
  trendOf,
  type Seen,
} from './seen.ts'
import type { GroupTracker } from './tracker.ts'

export interface GroupsOptions {
  store: Store
  records: GroupRecords
  tracker: GroupTracker
  clock: Clock
  hub: ObserverHub
  fingerprints?: readonly FingerprintRule[]
  classifierRules?: readonly Rule[]
}

/** Numbers of letters by state and fingerprint, as `tally` counts them by `groupState`. */
type GroupCounts = ReadonlyMap<string, number>

/** A group with what was read about it. */
interface Loaded {
  root: string
  members: readonly string[]
  state: GroupState
  seen: Seen
}

/**
 * Groups of letters: lists, details, and the actions of people. Counts are those of the store;
 * everything else comes from the records that the trackers of all processes write.
 */
export class Groups {
  readonly #options: GroupsOptions
  readonly #ranking: Ranking

  constructor(options: GroupsOptions) {
    this.#options = options
    this.#ranking = new Ranking(options)
  }

  /** Counts are those of the moment. */
  async list(query: GroupQuery): Promise<Page<Group>> {
    const search = readGroupQuery(query)
    const { from, size, filter, within } = search
    const states = await this.#options.records.states()
    const merges = new Merges(states)
    const ranked = await this.#ranking.roots(search, states, merges)
    const page = ranked.slice(from, from + size)
    const { loaded, counts } = await this.#loadAll(page, states, merges, filter)
    const items = (await this.#keepWithin(loaded, within))
      .map((one) => this.#groupOf(one, counts, filter.state !== undefined))
      .filter(({ count }) => count > 0)
    if (search.sort === 'count') items.sort((a, b) => b.count - a.count)
    return size > 0 && from + size < ranked.length
      ? { items, cursor: String(from + size) }
      : { items }
  }

  /** Undefined if nothing is known about such a group. */
  async get(
    fingerprint: string,
    options: Pick<GroupQuery, 'within'>,
  ): Promise<GroupDetail | undefined> {
    checkFingerprint(fingerprint)
    checkKeys('group options', options, ['within'])
    const within = readWithin(options)
    const states = await this.#options.records.states()
    const merges = new Merges(states)
    const loaded = await this.#load(merges.rootOf(fingerprint), states, merges)
    const [group] = loaded ? await this.#keepWithin([loaded], within) : []
    return group && this.#detailOf(group)
  }

  /**
   * The latest change of each group that was ever changed, and `new` for each unchanged group that
   * was first seen within the last day. Merged groups are left out. At most 1,000 groups are new.
   */
  async latestChanges(): Promise<Map<string, LatestGroupChange>> {
    const { records, clock } = this.#options
    const [fresh, states] = await Promise.all([records.newGroups(clock.now()), records.states()])
    const changes = new Map<string, LatestGroupChange>()
    for (const [fingerprint, firstMs] of fresh)
      changes.set(fingerprint, { change: 'new', at: toTimestamp(firstMs) })
    for (const [fingerprint, { history, mergedInto }] of states) {
      const last = history.at(-1)
      if (mergedInto !== undefined) changes.delete(fingerprint)
      else if (last) changes.set(fingerprint, { change: last.change, at: last.at, by: last.by })
    }
    return changes
  }

  /** The groups of these fingerprints, each once. Unknown ones are left out. */
  async find(fingerprints: readonly string[]): Promise<FoundGroup[]> {
    const states = await this.#options.records.states()
    const merges = new Merges(states)
    const roots = new Set(fingerprints.map((fingerprint) => merges.rootOf(fingerprint)))
    const { loaded, counts } = await this.#loadAll([...roots], states, merges, {})
    return Promise.all(
      loaded.map(async (one) => ({
        group: this.#groupOf(one, counts, false),
        queues: await this.#queuesOf(one),
      })),
    )
  }

  resolve(fingerprint: string, by: string, options: ResolveGroupOptions): Promise<GroupDetail> {
    return this.#act(fingerprint, by, () => readResolve(options))
  }

  ignore(fingerprint: string, by: string, options: IgnoreGroupOptions): Promise<GroupDetail> {
    return this.#act(fingerprint, by, () => readIgnore(options))
  }

  reopen(fingerprint: string, by: string): Promise<GroupDetail> {
    return this.#act(fingerprint, by, () => ({ kind: 'reopen' }))
  }

  assign(fingerprint: string, by: string, assignee: string | null): Promise<GroupDetail> {
    return this.#act(fingerprint, by, () => readAssign(assignee))
  }

  note(fingerprint: string, by: string, text: string): Promise<GroupDetail> {
    return this.#act(fingerprint, by, () => readNote(text))
  }

  /** Letters keep their fingerprints; a record says that these belong to one group. */
  async merge(into: string, others: readonly string[], by: string): Promise<GroupDetail> {
    const target = await this.#findOne(checkFingerprint(into))
    const wanted = checkFingerprints('others', others)
    const actor = this.#actor(by)
    const found = await Promise.all(wanted.map((fingerprint) => this.#findOne(fingerprint)))
    const roots = [...new Set(found.map(({ root }) => root))]
    if (roots.includes(target.root))
      throw new RedriveError(
        'INVALID_INPUT',
        `group ${target.root} cannot be merged into itself: give the fingerprints of other groups`,
      )
    for (const root of roots) {
      await this.#change(root, (state) => act(state, { kind: 'merge', into: target.root }, actor))
      await this.#change(target.root, (state) => recordMember(state, 'merge', root, actor))
    }
    return this.#reload(target.root)
  }

  async split(fingerprint: string, by: string): Promise<GroupDetail> {
    const actor = this.#actor(by)
    const states = await this.#options.records.states()
    const from = states.get(checkFingerprint(fingerprint))?.mergedInto
    if (from === undefined)
      throw new RedriveError(
        'INVALID_INPUT',
        `group ${fingerprint} is not merged into another group: give one of the \`merged\` fingerprints of a group`,
      )
    await this.#change(fingerprint, (state) =>
      state.mergedInto === undefined ? state : act(state, { kind: 'split' }, actor),
    )
    await this.#change(from, (state) => recordMember(state, 'split', fingerprint, actor))
    return this.#reload(fingerprint)
  }

  async explain(id: string): Promise<GroupExplanation> {
    const { store, records, fingerprints, classifierRules } = this.#options
    const [letter] = await store.get([id])
    if (!letter)
      throw new RedriveError('LETTER_NOT_FOUND', `there is no letter ${id}: check the id`)
    const { fingerprint, queue, failure } = letter
    const merges = new Merges(await records.states())
    const { value, ...reasons } = explainFingerprint(queue, failure, fingerprints)
    const { category, rule } = classify(failure, classifierRules)
    const group = merges.rootOf(fingerprint)
    return { category, rule, fingerprint, group, computed: value, ...reasons }
  }

  /** The filter with all fingerprints of the merged groups that it names. */
  async expand<F extends LetterFilter>(filter: F): Promise<F> {
    const group: unknown = filter?.group
    const named = Array.isArray(group) ? (group as unknown[]) : [group]
    if (group === undefined || !named.every((one) => typeof one === 'string')) return filter
    const states = await this.#options.records.states()
    if (states.size === 0) return filter
    const merges = new Merges(states)
    const all = named.flatMap((one) => merges.membersOf(merges.rootOf(one)))
    return { ...filter, group: [...new Set(all)] }
  }

  async #act(fingerprint: string, by: string, read: () => GroupAction): Promise<GroupDetail> {
    const action = read()
    const actor = this.#actor(by)
    const { root } = await this.#findOne(checkFingerprint(fingerprint))
    await this.#change(root, (state) => act(state, action, actor))
    return this.#reload(root)
  }

  #actor(by: string): Actor {
    return { at: toTimestamp(this.#options.clock.now()), by: checkBy(by) }
  }

  async #change(root: string, change: (state: GroupState) => GroupState): Promise<void> {
    const { records, hub, tracker } = this.#options
    const { before, after } = await records.update(root, change)
    const entry = after.history.at(-1)
    if (after === before || !entry) return
    const seen = tracker.pending(root) ?? (await records.seen([root])).get(root)
    hub.emit({ type: 'group', fingerprint: root, title: seen?.newest.title ?? '', ...entry })
  }

  async #findOne(fingerprint: string): Promise<Loaded> {
    const states = await this.#options.records.states()
    const merges = new Merges(states)
    const loaded = await this.#load(merges.rootOf(fingerprint), states, merges)
    if (loaded) return loaded
    throw new RedriveError(
      'GROUP_NOT_FOUND',
      `there is no group ${JSON.stringify(fingerprint.slice(0, 100))}: check the fingerprint, or list the groups`,
    )
  }

  async #reload(fingerprint: string): Promise<GroupDetail> {
    return this.#detailOf(await this.#findOne(fingerprint))
  }

  /** What is known about some groups, and the counts of their letters that match the filter. */
  async #loadAll(
    roots: readonly string[],
    states: ReadonlyMap<string, GroupState>,
    merges: Merges,
    filter: LetterFilter,
  ): Promise<{ loaded: Loaded[]; counts: GroupCounts }> {
    const members = roots.flatMap((root) => merges.membersOf(root))
    const [counts, seen] = await Promise.all([
      this.#countByState(members, filter),
      this.#options.records.seen(members),
    ])
    const all = await Promise.all(roots.map((root) => this.#load(root, states, merges, seen)))
    return { loaded: all.filter((one) => one !== undefined), counts }
  }

  /** What is known about a group: from its records, this process, or else its newest letter. */
  async #load(
    root: string,
    states: ReadonlyMap<string, GroupState>,
    merges: Merges,
    alreadyRead?: ReadonlyMap<string, Seen>,
  ): Promise<Loaded | undefined> {
    const { store, records, tracker } = this.#options
    const members = merges.membersOf(root)
    const stored = alreadyRead ?? (await records.seen(members))
    const known = members.flatMap((member) => [stored.get(member), tracker.pending(member)])
    let seen: Seen | undefined
    for (const one of known) if (one) seen = seen ? mergeSeen(seen, one) : one
    if (!seen) {
      const group = [...members]
      const { items } = await store.find({ group, state: [...letterStates], limit: 1 })
      seen = items[0] && seenOf(items[0])
    }
    return seen && { root, members, state: states.get(root) ?? untouched, seen }
  }

  /** The groups that are in none but these queues. */
  async #keepWithin(groups: Loaded[], queues: readonly string[] | undefined): Promise<Loaded[]> {
    if (queues === undefined) return groups
    const allow = (names: string[] | undefined): boolean =>
      names !== undefined && names.every((name) => queues.includes(name))
    const isInside = async (group: Loaded): Promise<boolean> =>
      allow(seenQueues(group.seen)) && allow(await this.#queuesOf(group))
    const inside = await Promise.all(groups.map(isInside))
    return groups.filter((_, index) => inside[index])
  }

  /** All queues of a group. Undefined: there may be others than the known ones. */
  async #queuesOf({ members, seen }: Loaded): Promise<string[] | undefined> {
    const known = seenQueues(seen)
    if (!known) return undefined
    // Letters of an import, or whose record was removed, were not seen.
    const filter = { group: [...members], state: [...letterStates] }
    const counts = await this.#options.store.tally('queue', filter)
    const counted = [...counts].filter(([, count]) => count > 0).map(([queue]) => queue)
    return [...new Set([...known, ...counted])]
  }

  async #countByState(
    members: readonly string[],
    { state = [...letterStates], ...filter }: LetterFilter,
  ): Promise<GroupCounts> {
    if (members.length === 0) return new Map()
    return this.#options.store.tally('groupState', { ...filter, state, group: [...members] })
  }

  /** Archived letters count only if the query names states. */
  #groupOf(
    { root, members, state, seen }: Loaded,
    counts: GroupCounts,
    countsArchived: boolean,
  ): Group {
    const nowMs = this.#options.clock.now()
    const { id, queue, category, title } = seen.newest
    const states: Group['states'] = {}
    let count = 0
    for (const one of letterStates) {
      const countOf = (member: string): number => counts.get(`${one} ${member}`) ?? 0
      const letters = members.reduce((sum, member) => sum + countOf(member), 0)
      if (letters > 0) states[one] = letters
      if (one !== 'archived' || countsArchived) count += letters
    }
    return {
      fingerprint: root,
      ...(members.length > 1 ? { merged: members.filter((member) => member !== root) } : {}),
      title,
      queue,
      category,
      status: statusAt(state, toTimestamp(nowMs)),
      ...(state.assignee === undefined ? {} : { assignee: state.assignee }),
      count,
      states,
      firstSeen: seen.firstAt,
      lastSeen: seen.lastAt,
      growth: growthOf(seen, nowMs),
      trend: lastDayOf(seen, nowMs),
      sampleId: id,
    }
  }

  async #detailOf(loaded: Loaded): Promise<GroupDetail> {
    const { members, seen, state } = loaded
    const group = this.#groupOf(loaded, await this.#countByState(members, {}), false)
    return {
      ...group,
      trend: trendOf(seen, this.#options.clock.now()),
      queues: facetsOf(seen.queues),
      tenants: facetsOf(seen.tenants),
      hosts: facetsOf(seen.hosts),
      versions: facetsOf(seen.versions),
      ...(state.resolved ? { resolved: state.resolved } : {}),
      ...(state.ignored && group.status === 'ignored' ? { ignored: state.ignored } : {}),
      notes: state.notes,
      history: state.history,
    }
  }
}

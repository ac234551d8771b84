import {
  isDone,
  type ErrorCategory,
  type LetterSummary,
  type Recoverability,
  type RetryPolicy,
} from '../letter/letter.ts'
import { currentPolicy } from './after-run.ts'
import { neverAgain, retryDelay, withDefaults, type Customs } from './backoff.ts'
import { classifyFailure, type Rule } from './classify.ts'
import { maxRetriesFor, type MaxRetriesByCategory, type RetryLimits } from './retry-limits.ts'

/** What to try on stored letters. What is absent stays as it is. */
export interface BacktestChange {
  /** Rules in place of the options `rules` and `templates`. */
  rules?: readonly Rule[]
  /** Delay between retries, for all letters. */
  policy?: RetryPolicy
  /** Maximum number of retries, for letters without a limit of their own. */
  maxRetries?: number
  maxRetriesByCategory?: MaxRetriesByCategory
}

/** Sums over letters. */
export interface BacktestSide {
  /** Letters by category and by recoverability. */
  categories: { [K in ErrorCategory]?: number }
  recoverabilities: { [K in Recoverability]?: number }
  /** Letters that are parked at once, without a retry. */
  parked: number
  retries: number
  /** Time between retries, without jitter. */
  waitMs: number
}

export interface BacktestCounts {
  letters: number
  /** Letters for which something differs. */
  changed: number
  before: BacktestSide
  after: BacktestSide
  /** Letters that would be parked at once instead of retried, and the other way round. */
  newlyParked: number
  newlyRetried: number
}

export interface BacktestGroup extends BacktestCounts {
  /** The fingerprint. */
  group: string
  /** Name and message of one of the failures. */
  failure: string
}

export interface BacktestReport extends BacktestCounts {
  /** False: more letters match than were read. `letters` is the number that was read. */
  complete: boolean
  /** The groups with the most changed letters first. */
  groups: BacktestGroup[]
  /** Errors of the rules and backoffs. */
  problems: string[]
}

export interface BacktestContext {
  /** The rules that are in use. */
  rules: readonly Rule[]
  customs: Customs
  limitsFor: (queue: string) => RetryLimits
}

/** What decides how a letter is retried. */
interface Plan {
  category: ErrorCategory
  recoverability: Recoverability
  policy: RetryPolicy
  maxRetries: number
}

interface Schedule extends Plan {
  isParked: boolean
  retries: number
  waitMs: number
}

const maxProblems = 20
/** The middle of every jitter, so that the same letters give the same report. */
const middle = (): number => 0.5

/** Compares what a change would have done to letters with what is stored. Changes no letter. */
export class Backtest {
  readonly #change: BacktestChange
  readonly #context: BacktestContext
  readonly #total = noCounts()
  readonly #groups = new Map<string, BacktestGroup>()
  readonly #problems = new Set<string>()

  constructor(change: BacktestChange, context: BacktestContext) {
    this.#change = change
    this.#context = context
  }

  add(letter: LetterSummary): void {
    const before = this.#scheduleOf(letter, letter)
    const after = this.#scheduleOf(letter, this.#planAfter(letter))
    for (const counts of [this.#total, this.#groupOf(letter)]) addLetter(counts, before, after)
  }

  report(complete: boolean): BacktestReport {
    const groups = [...this.#groups.values()].sort(
      (one, other) => other.changed - one.changed || other.letters - one.letters,
    )
    return { ...this.#total, complete, groups, problems: [...this.#problems] }
  }

  #groupOf({ fingerprint: group, failure: { name, message } }: LetterSummary): BacktestGroup {
    const known = this.#groups.get(group)
    if (known) return known
    const failure = `${name}: ${message}`.slice(0, 200).toWellFormed()
    const added = { group, failure, ...noCounts() }
    this.#groups.set(group, added)
    return added
  }

  #planAfter(letter: LetterSummary): Plan {
    const { rules, policy, maxRetries, maxRetriesByCategory } = this.#change
    const { category, recoverability, advice } = this.#classify(letter, rules)
    const given = policy ?? advice?.backoff
    const hasLimits = maxRetries !== undefined || maxRetriesByCategory !== undefined
    const isLimited = !letter.maxRetriesChosen && (hasLimits || category !== letter.category)
    return {
      category,
      recoverability,
      policy: given ? withDefaults(given) : currentPolicy(letter, category),
      maxRetries:
        advice?.maxRetries ??
        (isLimited ? maxRetriesFor(category, this.#limitsFor(letter.queue)) : letter.maxRetries),
    }
  }

  /**
   * The stored classification stays unless the two sets of rules differ on the stored failure: it
   * was made with the thrown error, which is gone.
   */
  #classify(
    { failure, category, recoverability }: LetterSummary,
    rules: readonly Rule[] | undefined,
  ): Pick<Plan, 'category' | 'recoverability'> & { advice?: Pick<Rule, 'backoff' | 'maxRetries'> } {
    if (!rules) return { category, recoverability }
    const old = classifyFailure(failure, undefined, this.#context.rules)
    const next = classifyFailure(failure, undefined, rules)
    for (const problem of next.problems ?? []) this.#report(problem)
    const advice = next.template ? { advice: next.template } : {}
    const isSame = old.category === next.category && old.recoverability === next.recoverability
    return { ...(isSame ? { category, recoverability } : next), ...advice }
  }

  /** A new `maxRetries` replaces the limits by category, as the option of a queue does. */
  #limitsFor(queue: string): RetryLimits {
    const { maxRetries, maxRetriesByCategory } = this.#change
    const limits = this.#context.limitsFor(queue)
    return {
      ...limits,
      ...(maxRetries === undefined ? {} : { maxRetries, maxRetriesByCategory: {} }),
      ...(maxRetriesByCategory === undefined ? {} : { maxRetriesByCategory }),
    }
  }

  /**
   * The retries of a letter and the time between them. A letter that a retry resolved needs as many
   * retries as it had; nobody knows about the others, so they use all retries that they get.
   */
  #scheduleOf(letter: LetterSummary, plan: Plan): Schedule {
    const { category, recoverability, policy, maxRetries } = plan
    const known = { category, recoverability, policy, maxRetries }
    if (neverAgain.has(category) || maxRetries <= 0 || policy.kind === 'never')
      return { ...known, isParked: true, retries: 0, waitMs: 0 }
    const needed = isDone(letter) && letter.retries > 0 ? letter.retries : Infinity
    const retries = Math.min(needed, maxRetries)
    const { priority, failure } = letter
    const { customs } = this.#context
    let waitMs = 0
    for (let retry = 0; retry < retries; retry += 1) {
      const asked = { policy, retry, priority, failure, random: middle, customs }
      const { delayMs, problem } = retryDelay(asked)
      waitMs += delayMs ?? 0
      if (problem !== undefined) this.#report(problem)
    }
    return { ...known, isParked: false, retries, waitMs }
  }

  #report(problem: string): void {
    if (this.#problems.size < maxProblems) this.#problems.add(problem)
  }
}

function noCounts(): BacktestCounts {
  const counts = { letters: 0, changed: 0, newlyParked: 0, newlyRetried: 0 }
  return { ...counts, before: noSide(), after: noSide() }
}

function noSide(): BacktestSide {
  return { categories: {}, recoverabilities: {}, parked: 0, retries: 0, waitMs: 0 }
}

function addLetter(counts: BacktestCounts, before: Schedule, after: Schedule): void {
  addSchedule(counts.before, before)
  addSchedule(counts.after, after)
  counts.letters += 1
  if (isDifferent(before, after)) counts.changed += 1
  if (after.isParked && !before.isParked) counts.newlyParked += 1
  if (before.isParked && !after.isParked) counts.newlyRetried += 1
}

function addSchedule(side: BacktestSide, schedule: Schedule): void {
  const { category, recoverability, isParked, retries, waitMs } = schedule
  side.categories[category] = (side.categories[category] ?? 0) + 1
  side.recoverabilities[recoverability] = (side.recoverabilities[recoverability] ?? 0) + 1
  side.parked += isParked ? 1 : 0
  side.retries += retries
  side.waitMs += waitMs
}

function isDifferent(before: Schedule, after: Schedule): boolean {
  return (['category', 'recoverability', 'isParked', 'retries', 'waitMs'] as const).some(
    (key) => before[key] !== after[key],
  )
}

import { systemClock, type Clock } from '../../clock/clock.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Store, StoredLetter } from '../../store.ts'
import { everything, readIdPages } from './batches.ts'
import { beginCopy, type Progress } from './progress.ts'
import { copyRecords, saveDamaged } from './records.ts'
import { compareStores, type Verdict } from './verify.ts'

export interface CopyOptions {
  /**
   * Name of the source, such as its URL without a password. The target recognises the source by it.
   */
  source: string
  clock?: Clock
  /** True: only compares the stores. */
  verifyOnly?: boolean
  /** Stops the copy. The next copy continues from there. */
  signal?: AbortSignal
  onProgress?: (progress: CopyProgress) => void
}

export interface CopyProgress {
  doing: 'copy' | 'verify'
  letters: number
  /** Number of letters in the source at the start. */
  of: number
}

export interface CopyReport {
  /** True: source and target are the same. */
  ok: boolean
  /** Letters that this copy has written. */
  copied: number
  /** Result of the comparison. Absent: the copy was stopped before. */
  verdict?: Verdict
}

const copyKeys = keysOf<CopyOptions>({
  source: true,
  clock: true,
  verifyOnly: true,
  signal: true,
  onProgress: true,
})

/**
 * Copies a whole store into an empty one: letters of all states unchanged, with both versions of
 * edited payloads, records and lifetime totals. Then it compares everything. Both stores must be
 * open, and nothing else should use them; changes in the source during the copy are copied by the
 * comparison or by the next copy. Data that only the target has is never overwritten.
 */
export async function copyStore(from: Store, to: Store, options: CopyOptions): Promise<CopyReport> {
  checkKeys('copy options', options, copyKeys)
  const { source, clock = systemClock, verifyOnly = false } = options
  const run: Run = { from, to, options, of: 0, copied: 0 }
  const progress = verifyOnly ? undefined : await beginCopy(to, source, clock)
  run.of = await countLetters(from)
  if (progress && !(await copyAll(run, progress))) return { ok: false, copied: run.copied }
  const verdict = await verifyCopy(run)
  if (!verdict) return { ok: false, copied: run.copied }
  const ok = verdict.differences.count === 0 && verdict.damaged.count === 0
  if (ok) await progress?.save({ verifiedAt: toTimestamp(clock.now()) })
  return { ok, copied: run.copied, verdict }
}

interface Run {
  readonly from: Store
  readonly to: Store
  readonly options: CopyOptions
  /** Letters in the source. */
  of: number
  copied: number
}

async function countLetters(store: Store): Promise<number> {
  const counts = await store.tally('state', everything)
  return [...counts.values()].reduce((sum, count) => sum + count, 0)
}

/** Copies letters from the last position, then records and totals. False if it was stopped. */
async function copyAll(run: Run, progress: Progress): Promise<boolean> {
  const { from, to } = run
  let { letters } = progress
  for await (const { batches, cursor } of readIdPages(from, progress.cursor)) {
    for (const ids of batches) {
      await copyLetters(run, await from.stored(ids))
      letters += ids.length
      if (!reportProgress(run, 'copy', letters)) return false
    }
    if (cursor !== undefined) await progress.save({ cursor, letters })
  }
  await copyRecords(from, to)
  const totals = await from.totals()
  await progress.save({ counted: totals.reduce((sum, { count }) => sum + count, 0) })
  await to.keepTotals(totals)
  return true
}

async function copyLetters(run: Run, stored: readonly StoredLetter[]): Promise<void> {
  const damaged = stored.filter(({ letter }) => letter.corrupt !== undefined)
  await saveDamaged(run.to, damaged)
  const readable = stored.filter(({ letter }) => letter.corrupt === undefined)
  const results = await run.to.keep(readable)
  run.copied += results.filter((result) => result === 'written').length
}

/**
 * Compares the stores, and copies letters that are missing or older in the target, unless
 * `verifyOnly` is set.
 */
function verifyCopy(run: Run): Promise<Verdict | undefined> {
  const { from, to, options } = run
  let letters = 0
  return compareStores({
    from,
    to,
    copyStale: options.verifyOnly ? undefined : (stale) => copyLetters(run, stale),
    onCompared: (count) => reportProgress(run, 'verify', (letters += count)),
  })
}

/** Reports the progress. Returns false if the copy was stopped. */
function reportProgress(
  { options, of }: Run,
  doing: CopyProgress['doing'],
  letters: number,
): boolean {
  options.onProgress?.({ doing, letters, of: Math.max(of, letters) })
  return options.signal?.aborted !== true
}

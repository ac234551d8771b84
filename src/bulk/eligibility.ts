import { whyIncomplete } from '../letter/content.ts'
import type { LetterSummary, State } from '../letter/letter.ts'
import { replaysOfLetter } from '../letter/lineage.ts'
import { confirmedAt } from '../letter/replay-confirmation.ts'
import { whyReplayRefused, type ReplaySafety } from '../letter/replay-safety.ts'
import { isLegal, moveTable, type Move } from '../letter/move-table.ts'
import type { BulkActionName, BulkInput } from '../letter/bulk-action.ts'

/** The move in the table of moves that each action makes. */
const moveOfAction: Record<BulkActionName, Move> = {
  retry: 'retry',
  replay: 'replay',
  resolve: 'resolve',
  park: 'park',
  archive: 'archive',
  restore: 'restore',
  remove: 'remove',
  edit: 'edit',
  undo: 'edit',
  tag: 'edit',
  priority: 'edit',
}

/** The states that an action looks at if the filter names none: others have nothing to do. */
export function statesFor(action: BulkActionName): State[] {
  return [...new Set<State>([...moveTable[moveOfAction[action]].from, 'retrying'])]
}

export interface EligibilityRules {
  action: BulkActionName
  input: BulkInput
  maxReplays: number
  /** Whether letters of a queue may run again. Default: they may. */
  repairRulesFor?: ((queue: string) => { replay: ReplaySafety; requireFix: boolean }) | undefined
}

/** Why an action cannot be made on a letter. Undefined: it can. */
export function whyIneligible(
  letter: LetterSummary,
  { action, input, maxReplays, repairRulesFor }: EligibilityRules,
): string | undefined {
  const { state, corrupt, source, payload } = letter
  if (state === 'retrying') return 'it runs now'
  if (!isLegal(moveOfAction[action], state)) return `it is ${state}`
  if (corrupt !== undefined && action !== 'archive' && action !== 'park' && action !== 'remove')
    return 'its row cannot be read'
  const incomplete = whyIncomplete(letter)
  if (incomplete !== undefined && needsContent(action, letter)) return incomplete
  const confirmAt = confirmedAt(letter)
  if (confirmAt !== undefined && (action === 'replay' || action === 'retry'))
    return `it was replayed, and waits for confirmation until ${confirmAt}`
  if (action !== 'replay') return undefined
  if (replaysOfLetter(letter) >= maxReplays) return `it was replayed ${maxReplays} times already`
  const refusal = whyReplayRefused(letter, repairRulesFor?.(letter.queue).replay ?? 'safe')
  if (refusal !== undefined) return refusal
  if (payload.reference !== undefined) return 'its payload is only a reference'
  if (input.to === undefined && source.kind !== 'mailbox' && source.kind !== 'pipeline')
    return 'its source has no address: retry it, or name a mailbox with `to`'
  return undefined
}

/** A redacted payload can be edited, an erased one cannot. */
function needsContent(action: BulkActionName, { payload }: LetterSummary): boolean {
  if (action === 'retry' || action === 'replay') return true
  return payload.erased !== undefined && (action === 'edit' || action === 'undo')
}

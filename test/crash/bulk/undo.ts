import type { BulkAction } from '../../../src/letter/bulk-action.ts'
import { decodePayload } from '../../../src/letter/payload.ts'
import type { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { withLetters, type BulkCrashSettings } from './crash.ts'
import { queue } from './work.ts'

export interface UndoCrashResult {
  edit: BulkAction
  undo: BulkAction
  kills: number
  problems: string[]
}

const by = { by: 'crash test', reason: 'kills', concurrency: 250 }
const patch = [{ op: 'replace', path: '/number', value: -1 } as const]

/** Edits many letters and undoes that, while the process that does it is killed again and again. */
export function crashUndo(settings: BulkCrashSettings): Promise<UndoCrashResult> {
  return withLetters(settings, async ({ dlq, run }) => {
    const edit = await dlq.plan('edit', { queue }, { ...by, patch })
    const editKills = await run(edit, 1)
    const problems = await verifyNumbers(dlq, edit.id, () => -1)
    const undo = await dlq.planUndo(edit.id, by)
    const kills = editKills + (await run(undo, 1))
    problems.push(...(await verifyNumbers(dlq, undo.id, (index) => index)))
    const [edited, undone] = [await dlq.bulkAction(edit.id), await dlq.bulkAction(undo.id)]
    return { edit: edited, undo: undone, kills, problems }
  })
}

/** Compares the number of each letter, and how often the action has changed the letter. */
async function verifyNumbers(
  dlq: DeadLetterQueue,
  actionId: string,
  numberAt: (index: number) => number,
): Promise<string[]> {
  const problems: string[] = []
  let index = 0
  for (let cursor: string | undefined; ;) {
    const from = cursor === undefined ? {} : { cursor }
    const page = await dlq.find({ queue, order: 'oldest', payload: true, limit: 500, ...from })
    for (const { id, payload, history } of page.items) {
      const { number } = decodePayload(payload) as { number: number }
      if (number !== numberAt(index)) problems.push(`${id} has ${number}, not ${numberAt(index)}`)
      const changes = history.filter(({ note }) => note?.startsWith(`bulk action ${actionId}`))
      if (changes.length !== 1) problems.push(`${id} was changed ${changes.length} times`)
      index += 1
    }
    if (page.cursor === undefined) return problems
    cursor = page.cursor
  }
}

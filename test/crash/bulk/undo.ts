import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BulkAction } from '../../../src/letter/bulk-action.ts'
import { decodePayload } from '../../../src/letter/payload.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { createEnvironment } from '../environment.ts'
import { runWithKills, seed, start, type BulkCrashSettings } from './crash.ts'
import { options, queue } from './work.ts'

export interface UndoCrashResult {
  edit: BulkAction
  undo: BulkAction
  kills: number
  problems: string[]
}

const by = { by: 'crash test', reason: 'kills', concurrency: 250 }
const patch = [{ op: 'replace', path: '/number', value: -1 } as const]

/** Edits many letters and undoes that, while the process that does it is killed again and again. */
export async function crashUndo(settings: BulkCrashSettings): Promise<UndoCrashResult> {
  const dir = mkdtempSync(join(tmpdir(), 'redrive-undo-'))
  const environment = await createEnvironment(settings.store, dir, 0)
  try {
    const dlq = await DeadLetterQueue.open(environment.url, options)
    try {
      const ledger = join(dir, 'ledger')
      writeFileSync(ledger, '')
      await seed(dlq, settings.letters)
      const run = async ({ id }: BulkAction): Promise<number> => {
        await dlq.run(id)
        return runWithKills(dlq, id, settings, () => start(environment.url, ledger))
      }
      const { id: editId } = await dlq.plan('edit', { queue }, { ...by, patch })
      const editKills = await run(await dlq.bulkAction(editId))
      const problems = await verifyNumbers(dlq, editId, () => -1)
      const { id: undoId } = await dlq.planUndo(editId, by)
      const kills = editKills + (await run(await dlq.bulkAction(undoId)))
      problems.push(...(await verifyNumbers(dlq, undoId, (index) => index)))
      const [edit, undo] = [await dlq.bulkAction(editId), await dlq.bulkAction(undoId)]
      return { edit, undo, kills, problems }
    } finally {
      await dlq.close()
    }
  } finally {
    await environment.end(false)
    rmSync(dir, { recursive: true, force: true })
  }
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

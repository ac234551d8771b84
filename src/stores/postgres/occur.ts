import type { Transaction } from '../../backends/postgres/transaction.ts'
import { actionCode } from '../rows/codes.ts'
import type { Column } from '../rows/columns.ts'
import { joinColumn, tableOf } from './rows.ts'
import { updateStatement } from './update.ts'

/** A failure that was captured again while the letter with its dedupe key was open. */
export interface Occurrence {
  id: string
  entry: string
  category: number
  severity: number
  recoverability: number
  fingerprint: string
  failure: string
  updated_at: number
}

const columns = [
  'category',
  'severity',
  'recoverability',
  'fingerprint',
  'failure',
  'updated_at',
] as const
const names = ['id', 'entry', ...columns] as const

const occurStatement = updateStatement({
  source: tableOf(names, 'x'),
  values: new Map<Column, 'x'>(columns.map((column) => [column, 'x'])),
  due: undefined,
  also: ['occurrences = l.occurrences + 1'],
  guard: 'true',
  actions: `ARRAY[${actionCode('occur')}]`,
  slot: `$${names.length + 1}`,
  select: 'id',
})

/** Writes occurrences of letters that are locked, in order: each round has one of each letter. */
export async function occur(
  tx: Transaction,
  occurrences: readonly Occurrence[],
  slot: number,
): Promise<void> {
  for (let left = occurrences; left.length > 0;) {
    const round = [...new Map(left.toReversed().map((one) => [one.id, one])).values()]
    const values = names.map((name) => joinColumn(name, round, (one) => one[name]))
    await tx.rows(occurStatement, [...values, slot])
    left = left.filter((one) => !round.includes(one))
  }
}

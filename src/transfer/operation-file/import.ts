import type { Capacity, Store } from '../../store.ts'
import { readOperationFile, type OperationFile } from './read.ts'

export interface ImportReport {
  added: number
  /** Letters that were there already. */
  duplicates: number
  /** What could not be read or kept. */
  problems: string[]
}

const chunkSize = 500

/** Reads an operation file into a store. Doing it twice adds nothing the second time. */
export async function importOperationFile(
  store: Store,
  text: string,
  capacity?: Capacity,
): Promise<ImportReport> {
  return importOperations(store, readOperationFile(text), capacity)
}

/** The same, for one that is read already. */
export async function importOperations(
  store: Store,
  { letters, problems }: OperationFile,
  capacity?: Capacity,
): Promise<ImportReport> {
  const report: ImportReport = { added: 0, duplicates: 0, problems }
  for (let start = 0; start < letters.length; start += chunkSize) {
    const chunk = letters.slice(start, start + chunkSize)
    const results = await store.add(chunk, capacity)
    for (const [index, { kind }] of results.entries()) {
      if (kind === 'added') report.added++
      else if (kind === 'duplicate') report.duplicates++
      else problems.push(`letter ${chunk[index]!.id}: the store is full`)
    }
  }
  return report
}

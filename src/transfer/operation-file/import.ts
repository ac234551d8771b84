import type { Capacity, Store } from '../../store.ts'
import { readOperationFile, type OperationFile } from './read.ts'

export interface ImportReport {
  added: number
  /** Number of letters that already existed. */
  duplicates: number
  /** Problems of items that could not be read or stored. */
  problems: string[]
}

const chunkSize = 500

/** Imports an operation file into a store. A second import of the same file adds nothing. */
export async function importOperationFile(
  store: Store,
  text: string,
  capacity?: Capacity,
): Promise<ImportReport> {
  return importOperations(store, readOperationFile(text), capacity)
}

/** Imports the letters of an operation file that is already read. */
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
      else problems.push(`letter ${chunk[index]!.id}: not stored, the store is full (maxItems)`)
    }
  }
  return report
}

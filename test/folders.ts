import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterFile } from './after-file.ts'

/**
 * Creates an empty folder that is removed after the test file. The folders of a run that is killed
 * are removed by the next run: see test/run-folder.ts.
 */
export function aFolder(name = 'folder'): string {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`))
  afterFile(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

import { closeSync, fsyncSync, mkdirSync, openSync, statfsSync, writeFileSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { RedriveError } from '../../errors.ts'

/** Whether a file holds waiting letters. Its name is the id of its process's first append. */
export function isSpoolFile(name: string): boolean {
  return /^[0-9a-f-]{36,}\.spool$/.test(name)
}

/** Creates the folder with mode 0700 and syncs its name. Returns false if the folder exists. */
export function makeFolder(folder: string): boolean {
  const made = mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (made === undefined) return false
  for (let at = folder; at.length >= made.length; at = dirname(at)) syncFolder(dirname(at))
  return true
}

/** A new name is durable after an fsync of its folder. Windows neither has nor needs it. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Writes a file and syncs it. Writing the same file again is harmless. */
export function writeDurably(file: string, content: Uint8Array | string): void {
  writeFileSync(file, content, { mode: 0o600, flush: true })
  syncFolder(dirname(file))
}

/** Contents of a spool folder, seen from outside. */
export interface FolderContents {
  /** Files with waiting letters. A process may have them open. */
  files: string[]
  /** Files of a version that wrote journals. This version cannot read them. */
  oldFiles: string[]
  bytes: number
  damaged: number
  refused: number
}

/** Lists a spool folder without changing it. A missing folder is empty. */
export async function inspectFolder(folder: string): Promise<FolderContents> {
  const names = await readdir(folder).catch(() => [])
  const select = (suffix: string): string[] => names.filter((name) => name.endsWith(suffix))
  const [files, oldFiles] = [names.filter(isSpoolFile), select('.journal')]
  const sizes = await Promise.all(
    [...files, ...oldFiles].map((name) => stat(join(folder, name)).catch(() => ({ size: 0 }))),
  )
  return {
    files,
    oldFiles,
    bytes: sizes.reduce((sum, { size }) => sum + size, 0),
    damaged: select('.damaged').length,
    refused: select('.refused.json').length,
  }
}

/** Disk space that stays free, as in the SQLite store; on a small disk a share of it. */
const reserveBytes = 64 * 2 ** 20
const reserveShare = 0.1

/** A store on the same disk needs space to settle and remove letters: the spool leaves it free. */
export function checkDiskSpace(folder: string, wantedBytes: number): void {
  const { bavail, blocks, bsize } = statfsSync(folder)
  const left = bavail * bsize - wantedBytes
  if (left > Math.min(reserveBytes, blocks * bsize * reserveShare)) return
  throw new RedriveError(
    'STORE_UNAVAILABLE',
    `the disk of the spool ${folder} is nearly full: free some space`,
  )
}

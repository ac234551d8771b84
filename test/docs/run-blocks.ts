// Runs code blocks of the documentation, one after another, each in a folder of its own. Usage:
// fork it, send a `BlockToRun`, and wait for the `BlockResult`. It ends with its parent.
import { pathToFileURL } from 'node:url'

export interface BlockToRun {
  file: string
  /** The working directory of the block. */
  folder: string
}

/** The stack of the error of a block that has failed. */
export interface BlockResult {
  error?: string
}

const reader = new URL('reader.ts', import.meta.url).href

async function runBlock({ file, folder }: BlockToRun): Promise<void> {
  process.chdir(folder)
  // New values of the reader for each block: a query makes Node load the module again.
  await import(`${reader}?for=${encodeURIComponent(folder)}`)
  await import(pathToFileURL(file).href)
  reply({})
}

process.on('message', (block: BlockToRun) => void runBlock(block))

/** Also the errors of a block that nothing waits for. The process is then of no use. */
process.on('uncaughtException', (error) => reply({ error: error.stack ?? String(error) }))
process.on('disconnect', () => process.exit())

function reply(result: BlockResult): void {
  process.send!(result)
}

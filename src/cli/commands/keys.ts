import type { Command } from 'commander'
import type { KeyRotation, KeyUse } from '../../store.ts'
import { withStoreQueue, type GlobalOptions } from '../open.ts'
import { printEither } from '../print.ts'
import { createProgressLine } from '../progress-line.ts'
import { stopOnSignal, stoppedExit } from '../stop-on-signal.ts'
import { terminal } from '../terminal.ts'

const examples = `
Examples:
  redrive keys status      how many letters use each key
  redrive keys rotate      encrypt all letters with the current key

The keys are those of the configuration (encryption). Rotation may run while
workers do, and continues where it was interrupted when it is started again.`

export function addKeys(program: Command): void {
  const keys = program
    .command('keys')
    .description('show and rotate encryption keys')
    .addHelpText('after', examples)
  keys
    .command('status')
    .description('count the letters that use each key')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withStoreQueue('keys', options, async ({ dlq }) => {
        const use = await dlq.keyUse()
        printEither(options, use, formatUse(use))
      })
    })
  keys
    .command('rotate')
    .description('encrypt all letters with the current key')
    .action((_, self: Command) => rotate(self.optsWithGlobals<GlobalOptions>()))
}

async function rotate(options: GlobalOptions): Promise<void> {
  await withStoreQueue('keys', options, async ({ dlq, clock }) => {
    const progressLine = options.json ? undefined : createProgressLine(terminal.stderr, clock)
    const stopping = stopOnSignal()
    try {
      const rotation = await dlq.rotateKeys({
        signal: stopping.signal,
        onProgress: (progress) => progressLine?.show({ label: 'rotate', done: progress.checked }),
      })
      progressLine?.close()
      printEither(options, rotation, `${formatRotation(rotation)}.\n${adviceFor(rotation)}`)
      if (rotation.stopped) terminal.exitCode = stoppedExit
      else if (rotation.skipped + rotation.failed > 0) terminal.exitCode = 1
    } finally {
      stopping.end()
      progressLine?.close()
    }
  })
}

function formatRotation({ current, checked, rotated, skipped, failed }: KeyRotation): string {
  return `key ${current}: ${checked} checked, ${rotated} encrypted, ${skipped} skipped, ${failed} failed`
}

function adviceFor({ skipped, failed, stopped }: KeyRotation): string {
  if (stopped) return 'Stopped. Run the command again to continue.\n'
  const again = 'Some were in use or changed meanwhile. Run the command again.\n'
  const lost = 'Some cannot be decrypted: redrive list shows them. They are unchanged.\n'
  return (skipped > 0 ? again : '') + (failed > 0 ? lost : '')
}

function formatUse({ current, letters, records }: KeyUse): string {
  const names = [...new Set([current, ...Object.keys(letters), ...Object.keys(records)])]
  const lines = names.map((name) => {
    const isCurrent = name === current ? ' (current)' : ''
    return `${name}${isCurrent}: ${letters[name] ?? 0} letters, ${records[name] ?? 0} saved edits and bulk actions`
  })
  return `${lines.join('\n')}\n`
}

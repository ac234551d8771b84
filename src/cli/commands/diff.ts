import type { Command } from 'commander'
import { RedriveError } from '../../errors.ts'
import { formatDiff } from '../diff-format.ts'
import { resolveId } from '../letter-ids.ts'
import { withQueue, type GlobalOptions } from '../open.ts'
import { printEither } from '../print.ts'

interface DiffOptions extends GlobalOptions {
  from?: string
  to?: string
}

const examples = `
Examples:
  redrive diff 01995c3a                  from the payload as captured to now
  redrive diff 01995c3a --from 2 --to 3  between two versions`

export function addDiff(program: Command): void {
  program
    .command('diff')
    .argument('<id>', 'id, id prefix or source id of a letter')
    .description('show what edits changed in the payload of a letter')
    .option('--from <version>', 'default: the version as captured')
    .option('--to <version>', 'default: the current version')
    .addHelpText('after', examples)
    .action((given: string, _, self: Command) => {
      const options = self.optsWithGlobals<DiffOptions>()
      const from = readVersion('--from', options.from)
      const to = readVersion('--to', options.to)
      return withQueue(options, async ({ dlq, letters }) => {
        const diff = await dlq.diff(await resolveId(letters, given), from, to)
        printEither(options, diff, diff.kind === 'same' ? 'No changes.\n' : formatDiff(diff))
      })
    })
}

function readVersion(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new RedriveError(
    'INVALID_INPUT',
    `${option} must be the number of a version, such as 1, got "${text}"`,
  )
}

import type { Command } from 'commander'
import { RedriveError } from '../../errors.ts'
import { resolveId } from '../letter-ids.ts'
import { withQueue, type GlobalOptions } from '../open.ts'
import { printEither } from '../print.ts'
import { userName } from '../user-name.ts'

/** Options that describe an error. */
export interface ErrorOptions {
  message: string
  name?: string
  code?: string
  status?: string
}

interface FailOptions extends GlobalOptions, ErrorOptions {
  by?: string
}

const examples = `
Examples:
  redrive fail 01995c3a --message "card declined" --code card_declined

Counts like a failed run of a handler: the letter is retried later, parked, or
exhausted, as its policy says.`

export function addFail(program: Command): void {
  const command = program
    .command('fail')
    .argument('<id>', 'id, id prefix or source id of a letter')
    .description('report a failed run that happened elsewhere')
  addErrorOptions(command)
    .option('--by <name>', 'your name')
    .addHelpText('after', examples)
    .action((given: string, _, self: Command) => {
      const options = self.optsWithGlobals<FailOptions>()
      return withQueue(options, async ({ dlq, letters }) => {
        const id = await resolveId(letters, given)
        const letter = await dlq.fail(id, readError(options), options.by ?? userName())
        const { queue, state } = letter
        printEither(options, { id, ok: true, queue, state }, `${id}  ${state}\n`)
      })
    })
}

export function addErrorOptions(command: Command): Command {
  return command
    .requiredOption('--message <text>', 'message of the error')
    .option('--name <name>', 'name of the error; default: Error')
    .option('--code <code>', 'code of the error')
    .option('--status <number>', 'HTTP status of the error')
}

export function readError({ message, name = 'Error', code, status }: ErrorOptions): {
  name: string
  message: string
  code?: string
  status?: number
} {
  if (status !== undefined && !/^[1-5]\d\d$/.test(status))
    throw new RedriveError(
      'INVALID_INPUT',
      `--status must be an HTTP status such as 503, got "${status}"`,
    )
  return {
    name,
    message,
    ...(code === undefined ? {} : { code }),
    ...(status === undefined ? {} : { status: Number(status) }),
  }
}

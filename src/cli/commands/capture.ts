import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { RedriveError } from '../../errors.ts'
import type { Json } from '../../letter/letter.ts'
import { withStoreQueue, type GlobalOptions } from '../open.ts'
import { escapeLine, printEither } from '../print.ts'
import { findServer } from '../remote/server.ts'
import { addErrorOptions, readError, type ErrorOptions } from './fail.ts'

interface CaptureOptions extends GlobalOptions, ErrorOptions {
  file?: string
}

const examples = `
Examples:
  redrive capture charge-card --file order.json --message "gateway timeout"
  echo '{"order":1}' | redrive capture charge-card --file - --message failed

The payload is JSON. Without --file it is null.`

export function addCapture(program: Command): void {
  const command = program
    .command('capture')
    .argument('<queue>', 'name of the queue')
    .description('store a failure as a letter, as an application does')
    .option('--file <file>', 'a file with the payload as JSON, or - for standard input')
  addErrorOptions(command)
    .addHelpText('after', examples)
    .action(async (queue: string, _, self: Command) => {
      const options = self.optsWithGlobals<CaptureOptions>()
      const letter = await storeFailure(queue, options)
      const { id, state, occurrences } = letter
      const text = `${id}  ${escapeLine(queue)}  ${state}\n`
      printEither(options, { id, ok: true, queue, state, occurrences }, text)
    })
}

async function storeFailure(
  queue: string,
  options: CaptureOptions,
): Promise<{ id: string; state: string; occurrences: number }> {
  const error = readError(options)
  const payload = readPayload(options.file)
  const server = await findServer(options)
  if (server) return server.client.capture({ queue, json: payload, error })
  return withStoreQueue('capture', options, ({ dlq }) =>
    dlq.enqueue({ type: queue, payload }, error),
  )
}

function readPayload(file: string | undefined): Json {
  if (file === undefined) return null
  try {
    return JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8')) as Json
  } catch (error) {
    throw new RedriveError(
      'INVALID_INPUT',
      `--file: ${file} is not a file with JSON: ${(error as Error).message}`,
    )
  }
}

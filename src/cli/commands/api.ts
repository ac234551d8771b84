import { once } from 'node:events'
import type { Command } from 'commander'
import { checkOneOf } from '../../check/keys.ts'
import { RedriveError } from '../../errors.ts'
import type { GlobalOptions } from '../open.ts'
import { toJson } from '../print.ts'
import { findServer } from '../remote/server.ts'
import { stopOnSignal, stoppedExit } from '../stop-on-signal.ts'
import { terminal } from '../terminal.ts'

const examples = `
Examples:
  redrive api getSeries metric=captured queue=charge-card
  redrive api getQueue queue=charge-card
  redrive api getSettings --server http://127.0.0.1:7400

Calls any endpoint of a server by its name, and prints the response as JSON.
A value that is JSON is sent as such; any other value is a string. A key that is
repeated becomes a list. /reference of the server lists the endpoints.`

/** A client whose endpoint and input are known at run time only. */
type AnyClient = Record<
  string,
  (input: object, options: { signal: AbortSignal }) => Promise<unknown> | AsyncIterable<unknown>
>

export function addApi(program: Command): void {
  program
    .command('api')
    .argument('<endpoint>', 'name of the endpoint, such as getSeries')
    .argument('[fields...]', 'its input, as key=value')
    .description('call an endpoint of a server, and print its response')
    .addHelpText('after', examples)
    .action((name: string, fields: string[], _, self: Command) =>
      callEndpoint(name, readFields(fields), self.optsWithGlobals<GlobalOptions>()),
    )
}

async function callEndpoint(name: string, input: object, options: GlobalOptions): Promise<void> {
  const server = await findServer(options)
  if (!server)
    throw new RedriveError(
      'INVALID_INPUT',
      'api needs a server: give its URL with --server, such as --server http://127.0.0.1:7400',
    )
  const client = server.client as unknown as AnyClient
  checkOneOf('endpoint', name, Object.keys(client))
  const { signal, end } = stopOnSignal()
  try {
    const response = client[name]!(input, { signal })
    if (!(Symbol.asyncIterator in response)) print(await response, options)
    else
      for await (const value of response)
        if (!terminal.stdout.write(`${toJson(value)}\n`)) await once(terminal.stdout, 'drain')
  } catch (error) {
    if (!signal.aborted) throw error
    terminal.exitCode = stoppedExit
  } finally {
    end()
  }
}

function print(value: unknown, { jsonl }: GlobalOptions): void {
  const text = typeof value === 'string' ? value : `${toJson(value, jsonl ? undefined : 2)}\n`
  terminal.stdout.write(text)
}

function readFields(fields: readonly string[]): object {
  const input = new Map<string, unknown[]>()
  for (const field of fields) {
    const [, key = '', text = ''] = /^([\w.-]+)=(.*)$/s.exec(field) ?? []
    if (key === '')
      throw new RedriveError(
        'INVALID_INPUT',
        `a field must be a key and a value such as queue=charge-card, got "${field}"`,
      )
    input.set(key, [...(input.get(key) ?? []), readValue(text)])
  }
  return Object.fromEntries(
    [...input].map(([key, values]) => [key, values.length === 1 ? values[0] : values]),
  )
}

function readValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

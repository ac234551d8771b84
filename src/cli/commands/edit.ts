import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { RedriveError } from '../../errors.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { PayloadDiff } from '../../letter/payload-diff.ts'
import { decodeText, kindOf } from '../../letter/payload.ts'
import { askPerson, canAsk, isYes } from '../ask.ts'
import { resolveId } from '../letter-ids.ts'
import { withQueue, type ConfigOptions, type GlobalOptions, type OpenedQueue } from '../open.ts'
import { formatDiff } from '../diff-format.ts'
import { printEither } from '../print.ts'
import { userName } from '../user-name.ts'
import { addConfigOptions } from './config.ts'
import { ruleOptions } from './replay.ts'
import { terminal } from '../terminal.ts'

interface EditOptions extends ConfigOptions {
  by?: string
  reason?: string
  file?: string
  yes?: boolean
}

const examples = `
Examples:
  redrive edit 01995c3a                       with $EDITOR
  redrive edit 01995c3a --file fixed.json --reason "wrong currency" --yes
  redrive undo 01995c3a`

export function addEdit(program: Command): void {
  addConfigOptions(program.command('edit'))
    .argument('<id>', 'id, id prefix or source id of a letter')
    .description('edit the payload of a letter, and show what changes')
    .option('--file <file>', 'the new payload, instead of an editor')
    .option('--reason <text>', 'why; asked for if it is missing')
    .option('--by <name>', 'your name')
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('after', examples)
    .action((given: string, _, self: Command) => {
      const options = self.optsWithGlobals<EditOptions>()
      return withQueue(
        options,
        (opened) => editLetter(opened, given, options),
        () => ruleOptions(options),
      )
    })
  addConfigOptions(program.command('undo'))
    .argument('<id>', 'id, id prefix or source id of a letter')
    .description('undo the newest edit of a letter')
    .option('--by <name>', 'your name')
    .action((given: string, _, self: Command) => {
      const options = self.optsWithGlobals<EditOptions>()
      return withQueue(
        options,
        async ({ dlq, letters }) => {
          const letter = await dlq.undoEdit(
            await resolveId(letters, given),
            options.by ?? userName(),
          )
          printDone(options, letter, 'edit undone')
        },
        () => ruleOptions(options),
      )
    })
}

async function editLetter(
  { dlq, letters }: OpenedQueue,
  given: string,
  options: EditOptions,
): Promise<void> {
  const id = await resolveId(letters, given)
  const letter = (await letters.getExact(id))!
  if (letter.payload.redacted && !letters.isLocal && options.file === undefined)
    throw new RedriveError(
      'INVALID_INPUT',
      `the payload of letter ${id} is redacted for your token, and an edit would store the masked values: give the complete payload with --file`,
    )
  const { contentType } = letter.payload
  const text = options.file === undefined ? openEditor(letter) : readFileSync(options.file, 'utf8')
  const payload = readPayload(text, contentType)
  const { diffPayloads } = await import('../../letter/payload-diff.ts')
  const diff = diffPayloads(letter.payload, { bytes: Buffer.from(payload), contentType })
  if (isSame(diff)) return void terminal.stdout.write('Nothing was changed.\n')
  if (!options.json) terminal.stdout.write(formatDiff(diff))
  const reason = options.reason ?? (await ask('Reason: ', '--reason'))
  if (!options.yes && !isYes(await ask('Save this edit? [y/N] ', '--yes')))
    return void terminal.stdout.write('Nothing was changed.\n')
  const by = options.by ?? userName()
  printDone(options, await dlq.edit(id, { payload, contentType, reason, by }), 'edited')
}

/** Lets a person edit the payload in $EDITOR. */
function openEditor({ id, payload }: DeadLetter): string {
  const editor = terminal.env['VISUAL'] || terminal.env['EDITOR']
  if (!editor || !terminal.stdin.isTTY)
    throw new RedriveError(
      'INVALID_INPUT',
      'edit needs a terminal and the variable EDITOR: set it, or give the new payload with --file',
    )
  const kind = kindOf(payload.contentType)
  if (kind !== 'json' && kind !== 'text')
    throw new RedriveError(
      'INVALID_INPUT',
      `letter ${id} has a payload of ${payload.contentType}, which an editor cannot show: give the new one with --file`,
    )
  const text = decodeText(payload.bytes, payload.contentType)
  const folder = mkdtempSync(join(tmpdir(), 'redrive-edit-'))
  try {
    const file = join(folder, kind === 'json' ? 'payload.json' : 'payload.txt')
    writeFileSync(file, kind === 'json' ? indent(text) : text, { mode: 0o600 })
    // The variable may have arguments, as in "code --wait".
    const command = ['-c', `${editor} "$1"`, 'sh', file]
    const { status, error } = spawnSync('sh', command, { stdio: 'inherit' })
    if (error || status !== 0)
      throw new RedriveError('INVALID_INPUT', `the editor ${editor} failed: nothing was changed`)
    return readFileSync(file, 'utf8')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Indented, unless that would change a number or a duplicate key. */
function indent(json: string): string {
  try {
    const value: unknown = JSON.parse(json)
    return JSON.stringify(value) === json ? `${JSON.stringify(value, null, 2)}\n` : json
  } catch {
    return json
  }
}

/** Indented JSON becomes compact again. */
function readPayload(text: string, contentType: string): string {
  if (kindOf(contentType) !== 'json') return text
  try {
    const value: unknown = JSON.parse(text)
    return `${JSON.stringify(value, null, 2)}\n` === text ? JSON.stringify(value) : text.trim()
  } catch (error) {
    throw new RedriveError(
      'INVALID_INPUT',
      `the new payload is not JSON: ${(error as Error).message}: nothing was changed`,
    )
  }
}

function isSame(diff: PayloadDiff): boolean {
  return diff.kind === 'same' || (diff.kind === 'json' && diff.changes.length === 0)
}

/** Asks on a terminal. Otherwise the option is required. */
async function ask(question: string, option: string): Promise<string> {
  if (!canAsk())
    throw new RedriveError('INVALID_INPUT', `edit needs ${option}, since nobody can be asked here`)
  return askPerson(question)
}

function printDone(options: GlobalOptions, letter: DeadLetter, what: string): void {
  const { id, queue, state } = letter
  printEither(options, { id, ok: true, queue, state }, `${id}  ${what}\n`)
}

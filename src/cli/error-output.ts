import { CommanderError } from 'commander'
import { errorTable, RedriveError, type ErrorCode } from '../errors.ts'
import { escapeBlock } from './print.ts'
import { isProblem } from './remote/problem-code.ts'

/** What to do, for errors whose message does not say it, or says it for programs only. */
const fixes: Partial<Record<ErrorCode, string>> = {
  LETTER_NOT_FOUND:
    'redrive list shows the stored letters; add --state archived for archived ones.',
  GROUP_NOT_FOUND: 'redrive groups lists the groups.',
  ALERT_NOT_FOUND: 'redrive alerts list shows the raised alerts.',
  VIEW_NOT_FOUND: 'redrive views list shows the saved views.',
  NO_ROUTE:
    'Add the mailbox under mailboxes in redrive.yaml, or name another one with --to. redrive retry runs the handler instead.',
  TARGET_NOT_FOUND: 'redrive config check shows the targets under notify.',
  TOKEN_NOT_FOUND: 'redrive tokens list shows the tokens.',
  PLAN_EXPIRED: 'Plan the action again with redrive bulk plan.',
  APPROVAL_REQUIRED: 'Another person has to run redrive bulk approve.',
  VERSION_CONFLICT: 'Check the letter with redrive show, and try again.',
  UNAUTHENTICATED: 'Give a token with REDRIVE_TOKEN; redrive tokens create makes one.',
  FORBIDDEN: 'Use a token with this permission; redrive tokens create makes one.',
  TOO_MANY_REQUESTS: 'Wait a minute, and run the command again.',
  SERVER_BUSY: 'Wait a minute, and run the command again.',
  SERVER_STOPPING: 'Run the command again when the server has restarted.',
}

/** The same for errors that share their code with others. They may come from a server. */
const fixesOfMessages: [message: RegExp, fix: string][] = [
  [
    / has no full-text search: /,
    'redrive list --text finds a part of an error without it. The key search of redrive.yaml sets it.',
  ],
  [/^this queue has no keys: /, 'Set the keys with encryption in redrive.yaml.'],
]

function findFix(code: string, message: string): { fix?: string } {
  const [, found] = fixesOfMessages.find(([pattern]) => pattern.test(message)) ?? []
  const fix = found ?? fixes[code as ErrorCode]
  return fix === undefined ? {} : { fix }
}

const usageFix =
  'redrive --help lists the commands; redrive COMMAND --help shows the options of one.'

export interface ExplainedError {
  code: string
  message: string
  fix?: string
  exit: number
  /** Without JSON, the help was printed instead. */
  isPrinted?: boolean
}

/** Explains an error for the terminal: code, message, fix and exit code. */
export function explainError(error: unknown): ExplainedError {
  if (error instanceof RedriveError) {
    const { code, message } = error
    return { code, message, exit: errorTable[code].exit, ...findFix(code, message) }
  }
  if (isProblem(error)) {
    const { code, detail } = error.problem
    const known = Object.hasOwn(errorTable, code) ? errorTable[code as ErrorCode] : undefined
    return { code, message: detail, exit: known?.exit ?? 8, ...findFix(code, detail) }
  }
  if (error instanceof CommanderError) {
    // Commander has already printed help or version.
    if (error.exitCode === 0) return { code: '', message: '', exit: 0 }
    const { exit } = errorTable.INVALID_INPUT
    const usage = { code: 'INVALID_INPUT', exit }
    if (error.code === 'commander.help')
      return { ...usage, message: 'the command is missing', fix: usageFix, isPrinted: true }
    const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n')
    return { ...usage, message, fix: suggestion?.replace(/^\((.*)\)$/, '$1') ?? usageFix }
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return {
    code: 'UNEXPECTED',
    message,
    fix: 'This is a bug in redrive: please report it.',
    exit: 70,
  }
}

/** Explains that the output could not be written, for example because the disk is full. */
export function explainWriteError({ message }: Error): ExplainedError {
  return {
    code: 'UNWRITTEN',
    message: `the output could not be written completely: ${message}`,
    fix: 'The output is incomplete. Free disk space and run the command again.',
    exit: 74,
  }
}

/** The error for standard error: text, or one line of JSON. */
export function formatError(
  { code, message, fix, isPrinted }: ExplainedError,
  asJson = false,
): string {
  if (code === '' || (isPrinted && !asJson)) return ''
  if (asJson) return `${JSON.stringify({ error: { code, message, ...(fix ? { fix } : {}) } })}\n`
  return `${code}: ${escapeBlock(message)}\n${fix === undefined ? '' : `  ${fix}\n`}`
}

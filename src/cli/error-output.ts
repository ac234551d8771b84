import { CommanderError } from 'commander'
import { errorTable, RedriveError, type ErrorCode } from '../errors.ts'
import { escapeBlock } from './print.ts'

/** Advice for errors whose message has none. */
const advice: Partial<Record<ErrorCode, string>> = {
  LETTER_NOT_FOUND:
    'redrive list shows the stored letters; add --state archived for archived ones.',
  VERSION_CONFLICT: 'Check the letter with redrive show, and try again.',
}

export interface ExplainedError {
  code: string
  message: string
  advice?: string
  exit: number
}

/** Explains an error for the terminal: code, message, advice and exit code. */
export function explainError(error: unknown): ExplainedError {
  if (error instanceof RedriveError) {
    const { code, message } = error
    const hint = advice[code]
    return { code, message, exit: errorTable[code].exit, ...(hint ? { advice: hint } : {}) }
  }
  if (error instanceof CommanderError) {
    // Commander has already printed help or version.
    if (error.exitCode === 0) return { code: '', message: '', exit: 0 }
    const { exit } = errorTable.INVALID_INPUT
    if (error.code === 'commander.help') return { code: '', message: '', exit }
    const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n')
    const hint =
      suggestion?.replace(/^\((.*)\)$/, '$1') ??
      'redrive --help lists the commands; redrive COMMAND --help shows the options of one.'
    return { code: 'INVALID_INPUT', message, advice: hint, exit }
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return {
    code: 'UNEXPECTED',
    message,
    advice: 'This is a bug in redrive: please report it.',
    exit: 70,
  }
}

/** Explains that the output could not be written, for example because the disk is full. */
export function explainWriteError({ message }: Error): ExplainedError {
  return {
    code: 'UNWRITTEN',
    message: `the output could not be written completely: ${message}`,
    advice: 'The output is incomplete. Free disk space and run the command again.',
    exit: 74,
  }
}

/** The error for standard error: text, or one line of JSON. */
export function formatError(
  { code, message, advice: hint }: ExplainedError,
  asJson = false,
): string {
  if (code === '') return ''
  if (asJson)
    return `${JSON.stringify({ error: { code, message, ...(hint ? { advice: hint } : {}) } })}\n`
  return `${code}: ${escapeBlock(message)}\n${hint === undefined ? '' : `  ${hint}\n`}`
}

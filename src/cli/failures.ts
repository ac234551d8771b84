import { CommanderError } from 'commander'
import { errorTable, RedriveError, type ErrorCode } from '../errors.ts'
import { block } from './print.ts'

/** What to do about an error, where its message does not say it. */
const advice: Partial<Record<ErrorCode, string>> = {
  LETTER_NOT_FOUND:
    'redrive list shows the letters that are kept; archived ones with --state archived.',
  VERSION_CONFLICT: 'Look at it with redrive show, and try again.',
}

export interface Explained {
  code: string
  message: string
  advice?: string
  exit: number
}

/** An error as the person at the terminal needs it. */
export function explain(error: unknown): Explained {
  if (error instanceof RedriveError) {
    const { code, message } = error
    const hint = advice[code]
    return { code, message, exit: errorTable[code].exit, ...(hint ? { advice: hint } : {}) }
  }
  if (error instanceof CommanderError) {
    // Help and version are printed by then, asked for or not.
    if (error.exitCode === 0) return { code: '', message: '', exit: 0 }
    const { exit } = errorTable.INVALID_INPUT
    if (error.code === 'commander.help') return { code: '', message: '', exit }
    const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n')
    const hint =
      suggestion?.replace(/^\((.*)\)$/, '$1') ??
      'redrive --help lists the commands, redrive COMMAND --help what one takes.'
    return { code: 'INVALID_INPUT', message, advice: hint, exit }
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return {
    code: 'UNEXPECTED',
    message,
    advice: 'This is a bug of redrive: please report it.',
    exit: 70,
  }
}

/** Our output was not taken, as by a disk that is full. */
export function unwritten({ message }: Error): Explained {
  return {
    code: 'UNWRITTEN',
    message: `the output could not be written to its end: ${message}`,
    advice: 'What is there is not all of it. Make room, and run it again.',
    exit: 74,
  }
}

/** The error as it goes to standard error: lines for people, or one line of JSON for programs. */
export function tell({ code, message, advice: hint }: Explained, asJson = false): string {
  if (code === '') return ''
  if (asJson)
    return `${JSON.stringify({ error: { code, message, ...(hint ? { advice: hint } : {}) } })}\n`
  return `${code}: ${block(message)}\n${hint === undefined ? '' : `  ${hint}\n`}`
}

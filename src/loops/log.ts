import { toFailure } from '../letter/failure.ts'
import { escapeHidden } from '../letter/payload-view.ts'
import { hasMethod, wrongOption } from './check-options.ts'
import type { LoopEvent } from './events.ts'

type Level = 'debug' | 'info' | 'warn' | 'error'

/** As much of a logger as is needed: pino's, or any other that takes fields and a message. */
export type LoopLogger = Record<Level, (fields: object, message: string) => void>

const maxText = 500

const lines: Record<LoopEvent['type'], [Level, string]> = {
  'message-done': ['debug', 'Message processed'],
  'message-failed': ['warn', 'Message failed, it comes again'],
  'message-released': ['debug', 'Message given back'],
  'message-lost': ['warn', 'Lease of a message lost'],
  'message-refused': ['warn', 'Message refused'],
  'dead-lettered': ['warn', 'Message dead-lettered'],
  'dead-letter-handled': ['info', 'Processing dead letter'],
  'dead-letter-failed': ['error', 'DLQ handler failed'],
  'dead-letter-parked': ['error', 'Dead letter parked'],
  'messages-expired': ['warn', 'Messages expired'],
  depth: ['debug', 'Depth of the dead letter queue'],
  'loop-crashed': ['error', 'Loop crashed'],
  'loop-stalled': ['error', 'Loop stalled'],
  error: ['error', 'Error'],
}

/** Every event as one structured line, for `onEvent`. What errors say is bounded and cannot break a line. */
export function logLoop(logger: LoopLogger): (event: LoopEvent) => void {
  for (const level of ['debug', 'info', 'warn', 'error'] satisfies Level[])
    if (!hasMethod(logger, level))
      throw wrongOption('logLoop', 'logger', `a logger with the method ${level}`, logger)
  return (event) => {
    const { type, ...facts } = renamed(event)
    const [level, message] = lines[event.type]
    logger[level]({ event: type, ...facts }, message)
  }
}

/** The names that people look for in logs of dead letters. */
function renamed(event: LoopEvent): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(event)) {
    if (key === 'deliveries') fields['deliveryCount'] = value
    else if (key === 'mailbox' && event.type === 'dead-lettered') fields['sourceMailbox'] = value
    else if (key === 'error') Object.assign(fields, told(value))
    else fields[key] = typeof value === 'string' ? shown(value) : value
  }
  return fields
}

function told(error: unknown): { errorType: string; errorMessage: string } {
  const { name, message, code } = toFailure(error, '')
  return { errorType: code === undefined ? name : `${name} ${code}`, errorMessage: shown(message) }
}

function shown(text: string): string {
  const bounded = text.length > maxText ? `${text.slice(0, maxText)}…` : text
  return escapeHidden(bounded).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
}

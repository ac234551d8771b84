import { toFailure } from '../letter/failure.ts'
import { logWith, toLogString, type LoggerLike, type LogLine } from '../observers/log.ts'
import type { LoopEvent } from './events.ts'

export type { LoggerLike as LoopLogger }

const lines: Record<LoopEvent['type'], [LogLine['level'], string]> = {
  'message-done': ['debug', 'Message processed'],
  'message-failed': ['warn', 'Message failed, it is delivered again'],
  'message-deferred': ['warn', 'Message deferred, the failure is not counted'],
  'message-released': ['debug', 'Message released'],
  'message-lost': ['warn', 'Lease of a message lost'],
  'message-refused': ['warn', 'Message refused'],
  'dead-lettered': ['warn', 'Message dead-lettered'],
  'dead-letter-handled': ['info', 'Processing dead letter'],
  'dead-letter-failed': ['error', 'DLQ handler failed'],
  'dead-letter-parked': ['error', 'Dead letter parked'],
  'messages-expired': ['warn', 'Messages expired'],
  depth: ['debug', 'Depth of the dead letter queue'],
  'loop-breaker': ['warn', 'Breaker of the loop changed'],
  'loop-crashed': ['error', 'Loop crashed'],
  'loop-stalled': ['error', 'Loop stalled'],
  error: ['error', 'Error'],
}

/** Returns a listener for `onEvent` that writes every event as one structured line. */
export function logLoop(logger: LoggerLike): (event: LoopEvent) => void {
  return logWith<LoopEvent>('logLoop', logger, (event) => {
    const [level, message] = lines[event.type]
    return { level, message, ...fieldsOf(event) }
  })
}

/** The fields of an event, by the names that people search for in logs of dead letters. */
function fieldsOf(event: LoopEvent): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(event)) {
    if (key === 'deliveries') fields['deliveryCount'] = value
    else if (key === 'mailbox' && event.type === 'dead-lettered') fields['sourceMailbox'] = value
    else if (key === 'error') Object.assign(fields, errorFields(value))
    else if (key !== 'type') fields[key] = typeof value === 'string' ? toLogString(value) : value
  }
  return fields
}

function errorFields(error: unknown): { errorType: string; errorMessage: string } {
  const { name, message, code } = toFailure(error, '')
  const errorType = code === undefined ? name : `${name} ${code}`
  return { errorType, errorMessage: toLogString(message) }
}

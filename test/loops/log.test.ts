import { expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import type { LoopEvent } from '../../src/loops/events.ts'
import { logLoop } from '../../src/loops/log.ts'

function logged(event: LoopEvent): unknown {
  let line: unknown
  const at =
    (level: string) =>
    (fields: object, message: string): void => {
      line = { level, message, ...fields }
    }
  logLoop({ debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') })(event)
  return line
}

it('logs a dead-lettered message as a warning with the expected fields', () => {
  expect(
    logged({
      type: 'dead-lettered',
      mailbox: 'requests',
      messageId: 'm-1',
      requestId: 'r-1',
      deliveries: 5,
      errorType: 'TypeError',
      errorMessage: 'no\nsuch order',
      destination: 'requests-dlq',
    }),
  ).toEqual({
    level: 'warn',
    message: 'Message dead-lettered',
    event: 'dead-lettered',
    messageId: 'm-1',
    requestId: 'r-1',
    sourceMailbox: 'requests',
    deliveryCount: 5,
    errorType: 'TypeError',
    errorMessage: 'no\\nsuch order',
    destination: 'requests-dlq',
  })
})

it('logs a handled dead letter with its age and the action', () => {
  expect(
    logged({
      type: 'dead-letter-handled',
      mailbox: 'requests-dlq',
      sourceMailbox: 'requests',
      messageId: 'm-1',
      requestId: 'r-1',
      deliveries: 1,
      ageSeconds: 90,
      errorType: 'TypeError',
      action: 'replayed',
      durationMs: 3,
    }),
  ).toMatchObject({
    level: 'info',
    message: 'Processing dead letter',
    messageId: 'm-1',
    requestId: 'r-1',
    ageSeconds: 90,
    action: 'replayed',
  })
})

it('logs expired messages as a warning with the mailbox and their number', () => {
  expect(logged({ type: 'messages-expired', mailbox: 'requests-dlq', count: 3 })).toEqual({
    level: 'warn',
    message: 'Messages expired',
    event: 'messages-expired',
    mailbox: 'requests-dlq',
    count: 3,
  })
})

it('logs a change of the breaker with its cause and the time of the next probe', () => {
  const until = '2026-01-01T00:00:30.000Z'
  const cause = 'Error: connect ECONNREFUSED'
  const event = { type: 'loop-breaker', mailbox: 'requests', state: 'open', until, cause } as const
  expect(logged(event)).toEqual({
    level: 'warn',
    message: 'Breaker of the loop changed',
    event: 'loop-breaker',
    mailbox: 'requests',
    state: 'open',
    until,
    cause,
  })
})

it('logs errors by type, code and a bounded message', () => {
  const error = new RedriveError('MAILBOX_FULL', 'x'.repeat(900))
  const line = logged({ type: 'error', during: 'sending', error }) as { errorMessage: string }
  expect(line).toMatchObject({ level: 'error', errorType: 'RedriveError MAILBOX_FULL' })
  expect(line.errorMessage).toHaveLength(501)
})

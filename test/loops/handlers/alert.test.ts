import { expect, it } from 'vitest'
import { alertHandler } from '../../../src/loops/handlers/alert.ts'
import { aDeadMessage } from '../a-dead-message.ts'

const context = { attempt: 1, signal: new AbortController().signal } as never

it('reports the message and its error, but not its body', async () => {
  const lines: unknown[] = []
  const notified: string[] = []
  const handler = alertHandler({
    log: { error: (fields, message) => lines.push([message, fields]) },
    notify: ({ messageId }) => notified.push(messageId),
  })
  const handled = await handler(aDeadMessage({ requestId: 'r-1' }), context)
  expect(handled).toEqual({ action: 'alerted' })
  expect(notified).toEqual(['m-1'])
  expect(lines).toEqual([
    [
      'Request dead-lettered',
      {
        messageId: 'm-1',
        requestId: 'r-1',
        errorType: 'TypeError',
        error: 'no such order',
        deliveryCount: 5,
        source: 'requests',
      },
    ],
  ])
})

it('fails if notify fails', async () => {
  const handler = alertHandler({ notify: () => Promise.reject(new Error('no pager')) })
  await expect(handler(aDeadMessage(), context)).rejects.toThrow('no pager')
})

import { createServer, type AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { openMailbox } from '../../src/index.ts'
import { unreachable } from '../../src/backends/unreachable.ts'

const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
const fix = /nothing listens there: start the server, or correct the URL/

it.each([
  ['directly', refused],
  ['as a cause', new Error('failed', { cause: new Error('failed', { cause: refused }) })],
  ['among several', new AggregateError([new Error('other'), refused])],
])('names the fix for an error of a socket, %s', (_, error) => {
  expect(unreachable(error)).toMatch(fix)
})

it('returns undefined for any other error', () => {
  const round = new Error('round')
  round.cause = round
  const strange = Object.assign(new Error('strange'), { code: 'constructor', errors: 'none' })
  for (const error of [round, strange, 'ECONNREFUSED', null, undefined, { code: 'ENOTFOUND' }])
    expect(unreachable(error)).toBeUndefined()
})

it.each(['postgres', 'redis', 'amqp', 'nats', 'kafka'])(
  'is used by every driver: %s',
  async (scheme) => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    const sendTo = async (url: string): Promise<void> => {
      const mailbox = await openMailbox(url, { name: 'nobody' })
      try {
        await mailbox.send('lost')
      } finally {
        await mailbox.close()
      }
    }
    await expect(sendTo(`${scheme}://127.0.0.1:${port}`)).rejects.toThrow(fix)
  },
)

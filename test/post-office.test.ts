import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startFauxqs } from 'fauxqs'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { openMailbox, resolverOf } from '../src/post-office.ts'

const folder = mkdtempSync(join(tmpdir(), 'redrive-post-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('openMailbox', () => {
  it('opens a mailbox by its URL and the name behind the #', async () => {
    const mailbox = await openMailbox('memory:#requests')
    expect(mailbox.name).toBe('requests')
    await mailbox.send({ a: 1 })
    expect((await mailbox.receive())[0]?.value()).toEqual({ a: 1 })
    await mailbox.close()
  })

  it('reads a name that is escaped, and takes one that is given apart first', async () => {
    expect((await openMailbox('memory:#my%20letters')).name).toBe('my letters')
    expect((await openMailbox('memory:#100%')).name).toBe('100%')
    expect((await openMailbox('memory:#a', { name: 'b' })).name).toBe('b')
  })

  it.each([
    ['memory:', /needs a name.*memory:…#requests/],
    ['sqlite://mail.db#requests', /write sqlite:mail\.db for a file in this folder/],
    ['sqlite:#requests', /needs a file, as in sqlite:mail\.db#requests/],
    ['rediss', /opened by a URL/],
    ['reddis://localhost#a', /begin with reddis: did you mean redis:\?/],
    ['ftp://localhost#a', /begin with ftp:.*known: memory:, sqlite:, postgres:/],
    // As from an environment variable that nobody has set.
    [undefined, /opened by a URL/],
  ])('refuses %s and says what is right', async (url, expected) => {
    await expect(openMailbox(url as string)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringMatching(expected) as string,
    })
  })

  it('does not show a password in what it says', async () => {
    const failed = await openMailbox('nowhere://me:hunter2@localhost#a').catch((error) => error)
    expect(String(failed)).not.toContain('hunter2')
  })

  it('replies to mailboxes of the same broker, and closes them with itself', async () => {
    const url = `sqlite:${join(folder, 'mail.db')}`
    const requests = await openMailbox(`${url}#requests`)
    await requests.send('ping', { replyTo: 'replies' })
    const [message] = await requests.receive()
    await message!.reply('pong')
    await requests.close()
    const replies = await openMailbox(`${url}#replies`)
    expect((await replies.receive())[0]?.value()).toBe('pong')
    await replies.close()
  })

  it('replies to a queue of its own, although the URL names that of the requests', async () => {
    const server = await startFauxqs({ port: 0, logger: false })
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) vi.stubEnv(name, 'test')
    const requests = await openMailbox(
      `sqs://127.0.0.1:${server.port}/orders?region=us-east-1#requests`,
    )
    try {
      await requests.send('ping', { replyTo: 'replies' })
      const [message] = await requests.receive()
      await message!.reply('pong')
      expect(server.inspectQueue('replies')!.messages.ready).toHaveLength(1)
      expect(server.inspectQueue('orders')!.messages.ready).toEqual([])
    } finally {
      await requests.close()
      await server.stop()
      vi.unstubAllEnvs()
    }
  })

  it('replies where the resolver says, if one is given', async () => {
    const replies = await openMailbox('memory:#replies')
    const requests = await openMailbox('memory:#requests', { resolver: resolverOf([replies]) })
    await requests.send('ping', { replyTo: 'replies' })
    await requests.send('ping', { replyTo: 'strangers' })
    const [known, unknown] = await requests.receive({ max: 2 })
    await known!.reply('pong')
    expect((await replies.receive())[0]?.value()).toBe('pong')
    await expect(unknown!.reply('pong')).rejects.toMatchObject({ code: 'REPLY_UNAVAILABLE' })
  })
})

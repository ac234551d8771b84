import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { email, type EmailOptions } from '../../../src/observers/notify/email.ts'
import { alert, digest, hostile, raised } from './a-notification.ts'

const servers: SMTPServer[] = []

afterEach(async () => {
  await Promise.all(
    servers.splice(0).map((server) => new Promise<void>((closed) => server.close(closed))),
  )
})

interface Mail {
  from: string
  to: string[]
  text: string
}

/** A mail server on this machine. It accepts the user mia with the password secret. */
async function aMailServer(
  options: SMTPServerOptions = {},
): Promise<{ url: (login?: string) => string; mails: Mail[] }> {
  const mails: Mail[] = []
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    authOptional: true,
    onAuth: ({ username, password }, _, done) =>
      username === 'mia' && password === 's3cr3t/canary'
        ? done(null, { user: username })
        : done(new Error('Invalid username or password')),
    onData(stream, { envelope }, done) {
      let text = ''
      stream.setEncoding('utf8').on('data', (part: string) => (text += part))
      stream.on('end', () => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
        mails.push({ from, to: envelope.rcptTo.map(({ address }) => address), text })
        done()
      })
    },
    ...options,
  })
  servers.push(server)
  server.on('error', () => {})
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as AddressInfo
  return { url: (login = '') => `smtp://${login}127.0.0.1:${port}`, mails }
}

const addresses = { from: 'redrive@example.com', to: ['mia@example.com', 'leo@example.com'] }
const unfold = (text: string): string => text.replaceAll('\r\n', '\n').replaceAll(/\n[ \t]+/g, ' ')
/** The answer of a mail server, as smtp-server wants it. */
const reject = (code: number): Error => Object.assign(new Error('no'), { responseCode: code })

describe('email', () => {
  it('sends what happened, since when, what to do and where', async () => {
    const { url, mails } = await aMailServer()
    const target = email({ url: url('mia:s3cr3t%2Fcanary@'), ...addresses, plaintext: true })
    expect(await target.send(raised)).toMatchObject({
      sent: true,
      answer: expect.stringContaining('250'),
    })
    const [{ from, to, text }] = mails as [Mail]
    expect({ from, to }).toEqual(addresses)
    expect(unfold(text)).toContain('Subject: WARNING: many-exhausted\n')
    expect(unfold(text)).toContain('Message-ID: <01.team@redrive>\n')
    expect(unfold(text)).toContain('Auto-Submitted: auto-generated\n')
    expect(unfold(text)).toContain(
      `\n\n${alert.summary}\nSince ${alert.raisedAt}\nLook at the groups.\n\nhttps://redrive.example.com\n`,
    )
  })

  it('sends a digest as one mail', async () => {
    const { url, mails } = await aMailServer()
    await email({ url: url(), ...addresses, plaintext: true }).send(digest)
    expect(mails).toHaveLength(1)
    expect(unfold(mails[0]!.text)).toContain('Subject: Redrive: 1 raised, 1 cleared, 1 still')
  })

  it('cannot be made to add headers or recipients by names of queues', async () => {
    const { url, mails } = await aMailServer()
    const bad = { ...alert, name: hostile, queue: hostile, summary: hostile, hint: hostile }
    const target = email({ url: url(), ...addresses, plaintext: true })
    expect(
      await target.send({ ...raised, changes: [{ state: 'raised', alert: bad }] }),
    ).toMatchObject({ sent: true })
    const [{ to, text }] = mails as [Mail]
    expect(to).toEqual(addresses.to)
    const [head] = unfold(text).split('\n\n') as [string]
    const names = head.split('\n').map((line) => line.split(':', 1)[0]!.toLowerCase())
    expect(names.toSorted()).toEqual([
      'auto-submitted',
      'content-transfer-encoding',
      'content-type',
      'date',
      'from',
      'message-id',
      'mime-version',
      'subject',
      'to',
    ])
  })

  it('refuses to send without TLS, and says so', async () => {
    const { url, mails } = await aMailServer()
    const result = await email({ url: url('mia:s3cr3t%2Fcanary@'), ...addresses }).send(raised)
    expect(result).toEqual({
      sent: false,
      again: true,
      answer: '127.0.0.1 offers no STARTTLS, and plaintext is false',
    })
    expect(mails).toEqual([])
  })

  it('does not repeat a wrong password, and does not show it', async () => {
    const { url } = await aMailServer()
    const target = email({ url: url('mia:wrong-canary@'), ...addresses, plaintext: true })
    expect(await target.send(raised)).toEqual({
      sent: false,
      again: false,
      answer: '127.0.0.1 rejected the user or the password',
    })
  })

  it.each([
    [421, true],
    [450, true],
    [451, true],
    [550, false],
    [554, false],
  ])('knows whether another attempt helps after the answer %i', async (code, again) => {
    const { url } = await aMailServer({ onMailFrom: (_, __, done) => done(reject(code)) })
    const target = email({ url: url(), ...addresses, plaintext: true })
    expect(await target.send(raised)).toEqual({
      sent: false,
      again,
      answer: `127.0.0.1 answered ${code}`,
    })
  })

  it('tries again when the server is unreachable', async () => {
    const { url } = await aMailServer()
    const target = email({ url: url(), ...addresses, plaintext: true })
    await new Promise<void>((closed) => servers.splice(0)[0]!.close(closed))
    const result = await target.send(raised)
    expect(result).toMatchObject({ sent: false, again: true })
    expect(result.answer).toMatch(/^127\.0\.0\.1 is unreachable: E/)
  })

  it('fails for good without the package nodemailer, and never rejects', async () => {
    vi.doMock('nodemailer', () => {
      throw new Error('Cannot find package')
    })
    try {
      const target = email({ url: 'smtps://mail.example.com', ...addresses })
      expect(await target.send(raised)).toEqual({
        sent: false,
        again: false,
        answer: 'e-mail needs the package nodemailer: run npm install nodemailer',
      })
    } finally {
      vi.doUnmock('nodemailer')
    }
  })

  it('never rejects when a transport cannot be created', async () => {
    const createTransport = (): never => {
      throw Object.assign(new Error('no'), { code: 'ECONFIG' })
    }
    vi.doMock('nodemailer', () => ({ createTransport }))
    try {
      const target = email({ url: 'smtps://mail.example.com', ...addresses })
      expect(await target.send(raised)).toEqual({
        sent: false,
        again: true,
        answer: 'mail.example.com is unreachable: ECONFIG',
      })
    } finally {
      vi.doUnmock('nodemailer')
    }
  })

  it.each<[string, Partial<EmailOptions>]>([
    ['another scheme', { url: 'https://canary.example.com' }],
    ['no URL', { url: 'canary' }],
    ['a sender with a line break', { from: 'a@example.com\r\nBcc: canary@example.com' }],
    ['a list as a recipient', { to: 'a@example.com, canary@example.com' }],
    ['a name in a recipient', { to: 'Canary <canary@example.com>' }],
    ['no recipients', { to: [] }],
    ['too many recipients', { to: Array.from({ length: 51 }, () => 'canary@example.com') }],
    ['an unknown option', { secure: true } as never],
    ['a timeout above 60 s', { timeoutMs: 60_001 }],
    ['no timeout', { timeoutMs: 0 }],
  ])('rejects %s without showing the value', (_, options) => {
    let thrown: unknown
    try {
      email({ url: 'smtps://mail.example.com', ...addresses, ...options })
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({ code: 'INVALID_CONFIG' })
    expect((thrown as Error).message).not.toContain('canary')
  })
})

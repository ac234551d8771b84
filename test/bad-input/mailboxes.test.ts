import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Mailbox, Message } from '../../src/mailbox.ts'
import { RedriveError, type ErrorCode } from '../../src/errors.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import { mailboxKinds, type MailboxEnvironment } from '../faults/mailbox-kinds.ts'

const run = promisify(execFile)

/** What a call rejects with: an error of ours, with this code, that tells no secret. */
async function refused(act: Promise<unknown>, code: ErrorCode | RegExp): Promise<string> {
  const error: unknown = await act.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(RedriveError)
  expect((error as RedriveError).code).toMatch(code)
  const { message } = error as RedriveError
  expect(message).not.toContain('hunter2')
  return message
}

describe.each(Object.values(mailboxKinds))('a mailbox of $kind', ({ kind, missing, begin }) => {
  describe.skipIf(missing)('that is asked for what cannot be', { timeout: 60_000 }, () => {
    let ground: MailboxEnvironment
    let mailbox: Mailbox
    beforeAll(async () => {
      ground = await begin()
      mailbox = await openMailbox(ground.url('main'))
    }, 60_000)
    afterAll(async () => {
      await mailbox?.close()
      await ground?.clear()
    }, 60_000)

    const taken = async (from = mailbox): Promise<Message> => {
      const [message] = await from.receive({ waitSeconds: 20, visibilitySeconds: 60 })
      return message!
    }

    it('refuses times that are none, says which there are, and has done nothing', async () => {
      await mailbox.send('kept')
      const message = await taken()
      for (const wrong of [-1, 43_201, Number.NaN, Infinity, '30', {}, true]) {
        const seconds = wrong as number
        const calls: [name: string, call: Promise<unknown>][] = [
          ['visibilitySeconds', mailbox.receive({ visibilitySeconds: seconds })],
          ['waitSeconds', mailbox.receive({ waitSeconds: seconds })],
          ['delaySeconds', mailbox.send('late', { delaySeconds: seconds })],
          ['delaySeconds', message.nack({ delaySeconds: seconds })],
          ['seconds', message.extend(seconds)],
        ]
        for (const [name, call] of calls)
          expect(await refused(call, 'INVALID_INPUT')).toMatch(
            new RegExp(`^${name} must be from 0 to 43200, got `),
          )
      }
      expect(message.finalized).toBe(false)
      await message.acknowledge()
      expect(await mailbox.receive()).toEqual([])
    })

    it('takes a part of a second as a time', async () => {
      await mailbox.send('brief')
      const [message] = await mailbox.receive({ waitSeconds: 20.5, visibilitySeconds: 1.5 })
      await message!.extend(60.5)
      await message!.acknowledge()
    })

    it('takes a body as large as it says, and refuses one byte more with what to do instead', async () => {
      const { maxBodyBytes } = mailbox.powers
      // No text has these bytes, so that nothing is shorter in another form.
      const body = new Uint8Array(maxBodyBytes + 1).fill(255)
      const told = await refused(mailbox.send(body), 'TOO_LARGE')
      expect(told).toContain(`${kind} takes ${maxBodyBytes}`)
      expect(told).toContain('send a reference to it instead')
      await mailbox.send(body.subarray(1))
      const message = await taken()
      expect(Buffer.compare(message.body.bytes, body.subarray(1))).toBe(0)
      await message.acknowledge()
    })

    it('refuses every verb once it is closed, and says what to do', async () => {
      const own = await openMailbox(ground.url('closed'))
      await own.send('held', { replyTo: 'main' })
      const held = await taken(own)
      await own.close()
      const verbs: (() => Promise<unknown>)[] = [
        () => own.open(),
        () => own.send('late'),
        () => own.purge(),
        () => own.approximateCount(),
        () => held.acknowledge(),
        () => held.nack(),
        () => held.extend(1),
        () => held.reply('late'),
        ...(own.browse ? [() => own.browse!()] : []),
      ]
      for (const verb of verbs)
        expect(await refused(verb(), 'CLOSED')).toMatch(/ is closed: open another one$/)
      expect(await own.receive({ waitSeconds: 60 })).toEqual([])
      expect(await own.health()).toMatchObject({ ok: false, problems: ['the mailbox is closed'] })
    })

    it('needs a name in its URL, and says how', async () => {
      const [url] = ground.url('').split('#')
      for (const nameless of [url!, `${url}#`])
        expect(await refused(openMailbox(nameless), 'INVALID_INPUT')).toMatch(
          /^a mailbox needs a name, as in [a-z]+:…#requests$/,
        )
    })
  })
})

const login = 'app:hunter2@'

describe('the URL of a mailbox', { concurrent: true }, () => {
  it.each([
    ['memry:#a', 'memory'],
    ['sqlit:mail.db#a', 'sqlite'],
    [`postgre://${login}localhost/db#a`, 'postgres'],
    [`reddis://${login}localhost#a`, 'redis'],
    [`amqb://${login}localhost#a`, 'amqp'],
    [`rabbitmq://${login}localhost#a`, 'amqp'],
    [`natss://${login}localhost#a`, 'nats'],
    ['sqss://localhost#a', 'sqs'],
    [`kafak://${login}localhost#a`, 'kafka'],
  ])('%s is not known, and is told the one that is near', async (url, near) => {
    expect(await refused(openMailbox(url), 'INVALID_INPUT')).toContain(`did you mean ${near}:?`)
  })

  // PostgreSQL and AMQP have settings of their clients' own behind ?, and we do not know all of them.
  it.each([
    [`postgres://${login}localhost/db?poolSize=many#a`, /poolSize/],
    [`redis://${login}localhost?prefx=a#a`, /prefx/],
    [`nats://${login}localhost?prefx=a#a`, /prefx/],
    ['sqs://localhost?colour=red#a', /colour/],
    [`kafka://${login}localhost?prefx=a#a`, /prefx/],
  ])('%s has a setting that cannot be, and is told which', async (url, setting) => {
    expect(await refused(openMailbox(url), /^INVALID/)).toMatch(setting)
  })

  it.each([
    'sqlite:#a',
    `postgres://${login}local host/db#a`,
    `redis://${login}localhost/letters#a`,
    `amqp://${login}localhost:port#a`,
    `nats://${login}#a`,
    `sqs://${login}localhost#a`,
    'sqs://localhost/a/b#a',
    `kafka://${login}#a`,
  ])('%s is none that there can be, and is told what one is', async (url) => {
    expect(await refused(openMailbox(url), /^INVALID/)).toMatch(/mail\.db|:\/\/|the SDK finds them/)
  })

  it.each([
    `postgres://${login}127.0.0.1:1/db#a`,
    `redis://${login}127.0.0.1:1#a`,
    `amqp://${login}127.0.0.1:1#a`,
    `nats://${login}127.0.0.1:1#a`,
    'sqs://127.0.0.1:1?region=us-east-1#a',
    `kafka://${login}127.0.0.1:1#a`,
  ])('%s leads to nobody, and is told so', async (url) => {
    expect(await refused(openMailbox(url), 'MAILBOX_UNAVAILABLE')).toMatch(/127\.0\.0\.1:1|sqs a/)
  })

  it('that names a file which cannot be is told so', async () => {
    const told = await refused(
      openMailbox('sqlite:/no/such/folder/mail.db#a'),
      'MAILBOX_UNAVAILABLE',
    )
    expect(told).toContain('/no/such/folder/mail.db')
  })
})

/** What comes of URLs in a process of their own that lacks some packages. It must end by itself. */
async function opened(packages: string[], urls: string[]): Promise<unknown> {
  const script = join(import.meta.dirname, 'without.ts')
  const asked = [script, JSON.stringify(packages), JSON.stringify(urls)]
  const { stdout } = await run(process.execPath, asked, { timeout: 20_000 })
  return JSON.parse(stdout)
}

describe('a mailbox whose package is not installed', () => {
  const needs = (name: string): object => ({
    code: 'INVALID_CONFIG',
    message: `this mailbox needs a package: npm install ${name}`,
  })

  it('says what to install, and those that need none open', async () => {
    const packages = {
      'postgres://localhost/db#a': 'pg',
      'redis://localhost#a': 'redis',
      'amqp://localhost#a': 'amqplib',
      'nats://localhost#a': '@nats-io/transport-node',
      'sqs://localhost#a': '@aws-sdk/client-sqs',
      'kafka://localhost#a': '@platformatic/kafka',
    }
    const ground = await mailboxKinds.sqlite.begin()
    const urls = [...Object.keys(packages), 'memory:#a', ground.url('a')]
    expect(await opened(Object.values(packages), urls)).toEqual([
      ...Object.values(packages).map(needs),
      { opened: 'memory' },
      { opened: 'sqlite' },
    ])
    await ground.clear()
  })

  it('says so of the second package too, where there are two', async () => {
    expect(await opened(['@nats-io/jetstream'], ['nats://localhost#a'])).toEqual([
      needs('@nats-io/jetstream'),
    ])
  })
})

const { kafka } = mailboxKinds

describe.skipIf(kafka.missing)('a mailbox that cannot be made', () => {
  it('leaves nothing behind that would keep the process alive', async () => {
    const ground = await kafka.begin()
    const url = ground.url('a').replace('#', '&replicas=99#')
    expect(await opened([], [url])).toMatchObject([{ code: 'MAILBOX_UNAVAILABLE' }])
    await ground.clear()
  })
})

import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../processes.ts'
import type { Mailbox, Message } from '../../src/mailbox.ts'
import { RedriveError, type ErrorCode } from '../../src/errors.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import { mailboxKinds, type MailboxEnvironment } from '../faults/mailbox-kinds.ts'

/** Expects a RedriveError with this code and without secrets. Resolves with its message. */
async function expectRefusal(act: Promise<unknown>, code: ErrorCode | RegExp): Promise<string> {
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
  describe.skipIf(missing)('that gets invalid input', { timeout: 60_000 }, () => {
    let environment: MailboxEnvironment
    let mailbox: Mailbox
    beforeAll(async () => {
      environment = await begin()
      mailbox = await openMailbox(environment.url('main'))
    }, 60_000)
    afterAll(async () => {
      await mailbox?.close()
      await environment?.clear()
    }, 60_000)

    const receiveOne = async (from = mailbox): Promise<Message> => {
      const [message] = await from.receive({ waitSeconds: 20, visibilitySeconds: 60 })
      return message!
    }

    it('refuses invalid durations, names the valid range, and does nothing', async () => {
      await mailbox.send('kept')
      const message = await receiveOne()
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
          expect(await expectRefusal(call, 'INVALID_INPUT')).toMatch(
            new RegExp(`^${name} must be from 0 to 43200, got `),
          )
      }
      expect(message.finalized).toBe(false)
      await message.acknowledge()
      expect(await mailbox.receive()).toEqual([])
    })

    it('accepts fractions of a second', async () => {
      await mailbox.send('brief')
      const [message] = await mailbox.receive({ waitSeconds: 20.5, visibilitySeconds: 1.5 })
      expect(message!.value()).toBe('brief')
      await message!.extend(60.5)
      await message!.acknowledge()
    })

    it('accepts a body of the maximum size, and refuses one byte more with a fix', async () => {
      const { maxBodyBytes } = mailbox.powers
      // These bytes are not valid text, so no other encoding is shorter.
      const body = new Uint8Array(maxBodyBytes + 1).fill(255)
      const refusal = await expectRefusal(mailbox.send(body), 'TOO_LARGE')
      expect(refusal).toContain(`the limit of ${kind} is ${maxBodyBytes}`)
      expect(refusal).toContain('send a reference to it instead')
      await mailbox.send(body.subarray(1))
      const message = await receiveOne()
      expect(Buffer.compare(message.body.bytes, body.subarray(1))).toBe(0)
      await message.acknowledge()
    })

    it('refuses every call once it is closed, and names the fix', async () => {
      const own = await openMailbox(environment.url('closed'))
      await own.send('held', { replyTo: 'main' })
      const held = await receiveOne(own)
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
        expect(await expectRefusal(verb(), 'CLOSED')).toMatch(/ is closed: open a new one$/)
      expect(await own.receive({ waitSeconds: 60 })).toEqual([])
      expect(await own.health()).toMatchObject({ ok: false, problems: ['the mailbox is closed'] })
    })

    it('requires a name in its URL, and shows how', async () => {
      const [url] = environment.url('').split('#')
      for (const nameless of [url!, `${url}#`])
        expect(await expectRefusal(openMailbox(nameless), 'INVALID_INPUT')).toMatch(
          /^a mailbox needs a name, such as [a-z]+:…#requests$/,
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
  ])('%s is unknown, and the error suggests the nearest scheme', async (url, near) => {
    expect(await expectRefusal(openMailbox(url), 'INVALID_INPUT')).toContain(
      `did you mean ${near}:?`,
    )
  })

  // PostgreSQL and AMQP pass the query to their clients, so unknown settings are not checked.
  it.each([
    [`postgres://${login}localhost/db?poolSize=many#a`, /poolSize/],
    [`redis://${login}localhost?prefx=a#a`, /prefx/],
    [`nats://${login}localhost?prefx=a#a`, /prefx/],
    ['sqs://localhost?colour=red#a', /colour/],
    [`kafka://${login}localhost?prefx=a#a`, /prefx/],
  ])('%s has an invalid setting, and the error names it', async (url, setting) => {
    expect(await expectRefusal(openMailbox(url), /^INVALID/)).toMatch(setting)
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
  ])('%s is invalid, and the error shows a valid one', async (url) => {
    expect(await expectRefusal(openMailbox(url), /^INVALID/)).toMatch(
      /mail\.db|:\/\/|the SDK reads them/,
    )
  })

  it.each([
    `postgres://${login}127.0.0.1:1/db#a`,
    `redis://${login}127.0.0.1:1#a`,
    `amqp://${login}127.0.0.1:1#a`,
    `nats://${login}127.0.0.1:1#a`,
    'sqs://127.0.0.1:1?region=us-east-1#a',
    `kafka://${login}127.0.0.1:1#a`,
  ])('%s has no server, and the error reports it', async (url) => {
    expect(await expectRefusal(openMailbox(url), 'MAILBOX_UNAVAILABLE')).toMatch(
      /127\.0\.0\.1:1|sqs a/,
    )
  })

  it('with an invalid file path is refused', async () => {
    const message = await expectRefusal(
      openMailbox('sqlite:/no/such/folder/mail.db#a'),
      'MAILBOX_UNAVAILABLE',
    )
    expect(message).toContain('/no/such/folder/mail.db')
  })
})

/** Opens URLs in a process without some packages. The process must exit by itself. */
async function openWithout(packages: string[], urls: string[]): Promise<unknown> {
  const script = join(import.meta.dirname, 'open-without-packages.ts')
  const args = [script, JSON.stringify(packages), JSON.stringify(urls)]
  const { stdout } = await run(process.execPath, args, { timeout: 20_000 })
  return JSON.parse(stdout)
}

describe('a mailbox whose package is not installed', () => {
  const needs = (name: string): object => ({
    code: 'INVALID_CONFIG',
    message: `this mailbox needs the package ${name}: run npm install ${name}`,
  })

  it('names the package to install, and mailboxes without packages open', async () => {
    const packages = {
      'postgres://localhost/db#a': 'pg',
      'redis://localhost#a': 'redis',
      'amqp://localhost#a': 'amqplib',
      'nats://localhost#a': '@nats-io/transport-node',
      'sqs://localhost#a': '@aws-sdk/client-sqs',
      'kafka://localhost#a': '@platformatic/kafka',
    }
    const environment = await mailboxKinds.sqlite.begin()
    const urls = [...Object.keys(packages), 'memory:#a', environment.url('a')]
    expect(await openWithout(Object.values(packages), urls)).toEqual([
      ...Object.values(packages).map(needs),
      { opened: 'memory' },
      { opened: 'sqlite' },
    ])
    await environment.clear()
  })

  it('names the second package too, where there are two', async () => {
    expect(await openWithout(['@nats-io/jetstream'], ['nats://localhost#a'])).toEqual([
      needs('@nats-io/jetstream'),
    ])
  })
})

const { kafka } = mailboxKinds

describe.skipIf(kafka.missing)('a mailbox that cannot be created', () => {
  it('leaves nothing open that keeps the process alive', async () => {
    const environment = await kafka.begin()
    const url = environment.url('a').replace('#', '&replicas=99#')
    expect(await openWithout([], [url])).toMatchObject([{ code: 'MAILBOX_UNAVAILABLE' }])
    await environment.clear()
  })
})

// The eight kinds of mailboxes, each with a place of its own, by URL as users open them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Admin } from '@platformatic/kafka'
import { startFauxqs } from 'fauxqs'
import { removeMailboxes } from '../mailboxes/rabbitmq/place.ts'
import { kafkaPlace, natsPlace } from '../servers/broker-places.ts'
import { postgresPlace, redisPlace, type Place } from '../servers/places.ts'
import { backend, freshName } from '../servers/servers.ts'

export interface MailboxGround {
  /** The URL of a mailbox. */
  readonly url: (name: string) => string
  readonly clear: () => Promise<unknown>
}

export interface MailboxKind {
  readonly kind: string
  /** Why it cannot be tested here, or nothing. */
  readonly missing: string | undefined
  readonly begin: () => Promise<MailboxGround>
}

// The emulator lets anybody in, but the SDK says nothing without them.
process.env['AWS_ACCESS_KEY_ID'] ??= 'test'
process.env['AWS_SECRET_ACCESS_KEY'] ??= 'test'

/** A kind on a server whose place stands in the query of the URL. */
function placed(
  kind: 'postgres' | 'redis' | 'nats' | 'kafka',
  place: (url: string) => Place,
  query: (name: string) => string,
): MailboxKind {
  const { url, missing } = backend(kind)
  const server = url.includes('://') ? url : `${kind}://${url}`
  const begin = async (): Promise<MailboxGround> => {
    const { name: own, clear } = place(url)
    return { url: (name) => `${server}?${query(own)}#${encodeURIComponent(name)}`, clear }
  }
  return { kind, missing, begin }
}

/** Groups in which a killed process still counts as a member cannot be removed. */
function buryingKafkaPlace(url: string): Place {
  const { name, clear } = kafkaPlace(url)
  const bury = async (): Promise<void> => {
    const admin = new Admin({ clientId: name, bootstrapBrokers: [url] })
    try {
      const all = [...(await admin.listGroups()).keys()].filter((id) => id.startsWith(name))
      for (const [groupId, group] of all.length > 0
        ? await admin.describeGroups({ groups: all })
        : []) {
        const members = [...group.members.keys()].map((memberId) => ({ memberId }))
        if (members.length > 0) await admin.removeMembersFromConsumerGroup({ groupId, members })
      }
    } finally {
      await admin.close()
    }
  }
  return { name, clear: () => bury().then(clear) }
}

export const mailboxKinds = {
  memory: {
    kind: 'memory',
    missing: undefined,
    begin: async () => ({ url: (name) => `memory:#${name}`, clear: async () => {} }),
  },
  sqlite: {
    kind: 'sqlite',
    missing: undefined,
    begin: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'redrive-ground-'))
      return {
        url: (name) => `sqlite:${join(folder, 'mail.db')}#${name}`,
        clear: async () => rmSync(folder, { recursive: true }),
      }
    },
  },
  postgres: placed('postgres', postgresPlace, (name) => `schema=${name}`),
  redis: placed('redis', redisPlace, (name) => `prefix=${name}`),
  rabbitmq: {
    kind: 'rabbitmq',
    missing: backend('rabbitmq').missing,
    begin: async () => {
      const { url } = backend('rabbitmq')
      const prefix = freshName()
      const names = new Set<string>()
      const named = (name: string): string => {
        names.add(`${prefix}.${name}`)
        return `${url}#${prefix}.${name}`
      }
      return { url: named, clear: () => removeMailboxes(url, [...names]) }
    },
  },
  nats: placed('nats', natsPlace, (name) => `prefix=${name}`),
  sqs: {
    kind: 'sqs',
    missing: undefined,
    begin: async () => {
      const server = await startFauxqs({ port: 0, logger: false })
      return {
        url: (name) => `sqs://127.0.0.1:${server.port}?region=us-east-1#${name}`,
        clear: () => server.stop(),
      }
    },
  },
  kafka: placed('kafka', buryingKafkaPlace, (name) => `prefix=${name}.`),
} satisfies Record<string, MailboxKind>

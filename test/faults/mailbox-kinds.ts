// The eight kinds of mailboxes, opened by URL as users do, each in an environment of its own.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Admin } from '@platformatic/kafka'
import { startFauxqs } from 'fauxqs'
import { removeMailboxes } from '../mailboxes/rabbitmq/place.ts'
import { kafkaPlace, natsPlace } from '../servers/broker-places.ts'
import { postgresPlace, redisPlace, type Place } from '../servers/places.ts'
import { backend, freshName } from '../servers/servers.ts'

export interface MailboxEnvironment {
  /** The URL of a mailbox. */
  readonly url: (name: string) => string
  readonly clear: () => Promise<unknown>
}

export interface MailboxKind {
  readonly kind: string
  /** Why this kind cannot be tested here; undefined if it can. */
  readonly missing: string | undefined
  readonly begin: () => Promise<MailboxEnvironment>
}

// The emulator accepts any credentials, but the SDK requires some.
process.env['AWS_ACCESS_KEY_ID'] ??= 'test'
process.env['AWS_SECRET_ACCESS_KEY'] ??= 'test'

/** A kind on a shared server, isolated by a schema or prefix in the query of the URL. */
function isolate(
  kind: 'postgres' | 'redis' | 'nats' | 'kafka',
  place: (url: string) => Place,
  query: (name: string) => string,
): MailboxKind {
  const { url, missing } = backend(kind)
  const server = url.includes('://') ? url : `${kind}://${url}`
  const begin = async (): Promise<MailboxEnvironment> => {
    const { name: own, clear } = place(url)
    return { url: (name) => `${server}?${query(own)}#${encodeURIComponent(name)}`, clear }
  }
  return { kind, missing, begin }
}

/** Removes the members of killed processes first: a group with members cannot be deleted. */
function kafkaPlaceWithoutMembers(url: string): Place {
  const { name, clear } = kafkaPlace(url)
  const removeMembers = async (): Promise<void> => {
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
  return { name, clear: () => removeMembers().then(clear) }
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
      const folder = mkdtempSync(join(tmpdir(), 'redrive-mailbox-'))
      return {
        url: (name) => `sqlite:${join(folder, 'mail.db')}#${name}`,
        clear: async () => rmSync(folder, { recursive: true }),
      }
    },
  },
  postgres: isolate('postgres', postgresPlace, (name) => `schema=${name}`),
  redis: isolate('redis', redisPlace, (name) => `prefix=${name}`),
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
  nats: isolate('nats', natsPlace, (name) => `prefix=${name}`),
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
  kafka: isolate('kafka', kafkaPlaceWithoutMembers, (name) => `prefix=${name}.`),
} satisfies Record<string, MailboxKind>

import type { Pair } from './pair.ts'

export const mailboxKinds = [
  'memory',
  'sqlite',
  'postgres',
  'redis',
  'rabbitmq',
  'nats',
  'sqs',
  'kafka',
] as const
export type MailboxKind = (typeof mailboxKinds)[number]

/** Drivers are loaded only when they are measured. */
const openings: Record<MailboxKind, () => Promise<{ open: () => Promise<Pair> }>> = {
  memory: () => import('./memory.ts'),
  sqlite: () => import('./sqlite.ts'),
  postgres: () => import('./postgres.ts'),
  redis: () => import('./redis.ts'),
  rabbitmq: () => import('./rabbitmq.ts'),
  nats: () => import('./nats.ts'),
  sqs: () => import('./sqs.ts'),
  kafka: () => import('./kafka.ts'),
}

export async function openPair(kind: MailboxKind): Promise<Pair> {
  return (await openings[kind]()).open()
}

import { Admin, Producer } from '@platformatic/kafka'
import type { Mailbox } from '../../../src/mailbox.ts'
import { kafkaMailbox, type KafkaMailboxOptions } from '../../../src/mailboxes/kafka/kafka.ts'
import { mailboxTopic } from '../../../src/backends/kafka/topics.ts'
import { kafkaPlace } from '../../servers/broker-places.ts'

export interface KafkaBench {
  readonly prefix: string
  /** The topic of the mailbox, and its group. */
  readonly topic: string
  readonly admin: Admin
  readonly producer: Producer
  /** Opens another handle for the same mailbox. */
  open(options?: Partial<KafkaMailboxOptions>): Promise<Mailbox>
  /** The offset that the group has committed, by partition. -1: none. */
  committed(): Promise<number[]>
  close(): Promise<void>
}

export const mailboxName = 'main'

/** A mailbox with its own prefix, and other clients for its topic. */
export function kafkaBench(url: string): KafkaBench {
  const place = kafkaPlace(url)
  const prefix = `${place.name}.`
  const topic = mailboxTopic(prefix, mailboxName)
  const settings = { clientId: place.name, bootstrapBrokers: [url] }
  const admin = new Admin(settings)
  const producer = new Producer(settings)
  const opened: Mailbox[] = []
  return {
    prefix,
    topic,
    admin,
    producer,
    open: async (options = {}) => {
      const made = kafkaMailbox({ name: mailboxName, url, prefix, sessionMs: 1000, ...options })
      opened.push(made)
      await made.open()
      return made
    },
    committed: async () => {
      const [group] = await admin.listConsumerGroupOffsets({ groups: [topic] })
      return (group?.topics[0]?.partitions ?? [])
        .toSorted((a, b) => a.partitionIndex - b.partitionIndex)
        .map(({ committedOffset }) => Number(committedOffset))
    },
    close: async () => {
      await Promise.all(opened.map((one) => one.close()))
      await Promise.all([admin.close(), producer.close()])
      await place.clear()
    },
  }
}

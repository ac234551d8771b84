import type { Admin } from '@platformatic/kafka'
import type { Cluster } from '../../backends/kafka/cluster.ts'
import type { NodeSettings } from '../graph/settings.ts'
import { createTopics } from '../graph/topic-setup.ts'

interface TargetsOptions {
  cluster: Cluster
  settings: NodeSettings
  admin: Admin
  dryRun: boolean
}

/** Partition counts of the target topics. 0: the topic does not exist. */
export class Targets {
  readonly #cluster: Cluster
  readonly #settings: NodeSettings
  readonly #dryRun: boolean
  readonly #admin: Admin
  readonly #partitions = new Map<string, number>()

  constructor({ cluster, settings, admin, dryRun }: TargetsOptions) {
    this.#cluster = cluster
    this.#settings = settings
    this.#admin = admin
    this.#dryRun = dryRun
  }

  knows(topic: string): boolean {
    return this.#partitions.has(topic)
  }

  /** Undefined if not checked. */
  partitionsOf(topic: string): number | undefined {
    return this.#partitions.get(topic)
  }

  async look(topic: string): Promise<number> {
    const there = await this.#cluster.call(() => this.#admin.listTopics())
    if (!there.includes(topic)) return this.#know(topic, 0)
    const { topics } = await this.#cluster.call(() => this.#admin.metadata({ topics: [topic] }))
    return this.#know(topic, topics.get(topic)?.partitionsCount ?? 0)
  }

  /** Records at their maximum number of replays need the quarantine topic. */
  async makeQuarantine(): Promise<void> {
    const { dlq, partitions } = this.#settings
    if (!this.#dryRun && (await this.look(dlq.quarantineTopic)) === 0)
      await createTopics(this.#cluster, [this.#settings])
    this.#know(dlq.quarantineTopic, partitions)
  }

  #know(topic: string, partitions: number): number {
    this.#partitions.set(topic, partitions)
    return partitions
  }
}

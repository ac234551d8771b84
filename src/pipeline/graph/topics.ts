import { RedriveError } from '../../errors.ts'
import { escapeName } from '../../backends/kafka/topics.ts'

/** Names of topics have 249 characters at the most; the two ids of a name share them with what stands before. */
const maxIdLength = 110

/** Where a node stands. */
export interface NodePlace {
  cluster: string
  graph: string
  node: string
}

/** What a node reads, unless its topic is said. */
export function inputTopicOf({ cluster, graph, node }: NodePlace): string {
  const part = (id: string): string => escapeName(id, 75)
  return `pipestream.${part(cluster)}.${part(graph)}.${part(node)}`
}

/** Where its dead letters lie: `dlq.{cluster}.{node}`, unless its topic is said. */
export function dlqTopicOf(place: Pick<NodePlace, 'cluster' | 'node'>, said?: string): string {
  return said === undefined || said === '' ? named('dlq', place) : checkTopic(said)
}

/** Where those lie that were replayed as often as they may be. */
export function quarantineTopicOf(place: Pick<NodePlace, 'cluster' | 'node'>): string {
  return named('quarantine', place)
}

/** What is known about replays of a node's dead letters. */
export function replaysTopicOf(place: Pick<NodePlace, 'cluster' | 'node'>): string {
  return named('replays', place)
}

/** All DLQ topics of a cluster that have no names of their own. */
export function dlqTopicsOf(cluster: string): RegExp {
  return new RegExp(`^(?:dlq|quarantine)\\.${escapeName(cluster, maxIdLength)}\\.[A-Za-z0-9_-]+$`)
}

function named(kind: string, { cluster, node }: Pick<NodePlace, 'cluster' | 'node'>): string {
  return `${kind}.${escapeName(cluster, maxIdLength)}.${escapeName(node, maxIdLength)}`
}

/** A name that Kafka takes. */
export function checkTopic(topic: string): string {
  if (/^[A-Za-z0-9._-]{1,249}$/.test(topic) && topic !== '.' && topic !== '..') return topic
  throw new RedriveError(
    'INVALID_CONFIG',
    `${JSON.stringify(topic.slice(0, 80))} is no name of a topic: it has letters, digits, dots, _ and -, 249 at the most`,
  )
}

import { RedriveError } from '../../errors.ts'
import { escapeName } from '../../backends/kafka/topics.ts'

/** Topic names have at most 249 characters, which the two ids share with the prefix. */
const maxIdLength = 110

/** The position of a node. */
export interface NodePlace {
  cluster: string
  graph: string
  node: string
}

/** The input topic of a node. Default, unless configured. */
export function inputTopicOf({ cluster, graph, node }: NodePlace): string {
  const part = (id: string): string => escapeName(id, 75)
  return `pipestream.${part(cluster)}.${part(graph)}.${part(node)}`
}

/** The topic of its dead letters: `dlq.{cluster}.{node}`, unless configured. */
export function dlqTopicOf(place: Pick<NodePlace, 'cluster' | 'node'>, said?: string): string {
  return said === undefined || said === '' ? named('dlq', place) : checkTopic(said)
}

/** The topic of records that reached their maximum number of replays. */
export function quarantineTopicOf(place: Pick<NodePlace, 'cluster' | 'node'>): string {
  return named('quarantine', place)
}

/** The topic with the replays of a node's dead letters. */
export function replaysTopicOf(place: Pick<NodePlace, 'cluster' | 'node'>): string {
  return named('replays', place)
}

/** All DLQ topics of a cluster without a custom name. */
export function dlqTopicsOf(cluster: string): RegExp {
  return new RegExp(`^(?:dlq|quarantine)\\.${escapeName(cluster, maxIdLength)}\\.[A-Za-z0-9_-]+$`)
}

function named(kind: string, { cluster, node }: Pick<NodePlace, 'cluster' | 'node'>): string {
  return `${kind}.${escapeName(cluster, maxIdLength)}.${escapeName(node, maxIdLength)}`
}

/** Checks the name of a topic. */
export function checkTopic(topic: string): string {
  if (/^[A-Za-z0-9._-]{1,249}$/.test(topic) && topic !== '.' && topic !== '..') return topic
  throw new RedriveError(
    'INVALID_CONFIG',
    `${JSON.stringify(topic.slice(0, 80))} is not a valid topic name: use at most 249 letters, digits, dots, _ and -`,
  )
}

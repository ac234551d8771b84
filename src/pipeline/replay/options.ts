import { createHash } from 'node:crypto'
import type { Cluster } from '../../backends/kafka/cluster.ts'
import type { NodeSettings } from '../graph/settings.ts'
import type { ReplayFilter } from './filter.ts'
import type { ReplayProgress } from './replayed.ts'

export interface ReplayOptions {
  cluster: Cluster
  settings: NodeSettings
  filter?: ReplayFilter
  /** Maximum number of records. */
  limit?: number
  /** Maximum number of records per second. */
  rate?: number
  /**
   * Sends nothing, and counts what it would do: a replay that was stopped, or is done, with what it
   * did before.
   */
  dryRun?: boolean
  /** Replaces the source topics of the records. */
  target?: string
  /** Includes records that were replayed before. */
  again?: boolean
  /**
   * A stopped replay continues under its id. Default: derived from node, filter, limit and target.
   */
  id?: string
  onProgress?: (report: ReplayReport) => void
  /**
   * Stops between two transactions. If a broker does not answer whether the last one is committed,
   * the replay rejects without waiting.
   */
  signal?: AbortSignal
}

/**
 * What a replay did, or what a dry run would do. `done` is false if it was stopped: started again,
 * it continues. Without `ends` there is no DLQ topic, and nothing to do.
 */
export type ReplayReport = Readonly<ReplayProgress> & { readonly dryRun: boolean }

/** The same parameters are the same replay. */
export function replayIdOf(options: ReplayOptions): string {
  const { cluster, node } = options.settings
  const identity = JSON.stringify([cluster, node, formatRequest(options)])
  return createHash('sha256').update(identity).digest('hex').slice(0, 16)
}

export function formatRequest({ filter = {}, limit, target, again }: ReplayOptions): string {
  return JSON.stringify({ filter, limit, target, again })
}

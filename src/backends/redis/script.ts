import { createHash } from 'node:crypto'

/** A Lua script, and the SHA-1 by which the server knows it once it has run. */
export interface Script {
  source: string
  sha: string
  /** Whether its writes must reach replicas before they count, where `waitReplicas` is set. */
  isReplicated: boolean
}

export function script(source: string, isReplicated: boolean): Script {
  return { source, isReplicated, sha: createHash('sha1').update(source).digest('hex') }
}

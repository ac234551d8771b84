import { createHash } from 'node:crypto'

/** A script, by the name the server knows it under once it has seen it. */
export interface Script {
  source: string
  sha: string
  /** What it wrote counts as done only once replicas have it, where they are asked for. */
  copied: boolean
}

export function script(source: string, copied: boolean): Script {
  return { source, copied, sha: createHash('sha1').update(source).digest('hex') }
}

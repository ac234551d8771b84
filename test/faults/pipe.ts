// One direction of a proxied connection: chunks are delayed, then passed, held or dropped.
import type { Socket } from 'node:net'

/** What happens to bytes. Held bytes are delivered later, as TCP does when a network heals. */
export type Flow = 'pass' | 'hold' | 'drop'

/** What happened to a chunk of a stream. */
export type Fate = 'passed' | 'held' | 'dropped'

export interface PipeRules {
  readonly flow: () => Flow
  /** The latency of the next chunk, in ms. */
  readonly latency: () => number
  /** May change a chunk. Returns undefined if it ended the connection. */
  readonly alter: (chunk: Buffer) => Buffer | undefined
  readonly report: (fate: Fate) => void
}

/** The end of a stream, normal or broken, is queued like any chunk. */
type Chunk = Buffer | 'end' | 'broken'

export interface Pipe {
  /** Routes the held chunks again unless the flow is still `hold`. */
  readonly flush: () => void
}

/**
 * Forwards data from one socket to the other. A pipe that dropped a chunk drops everything after
 * it: TCP never delivers a stream with a hole, and the peer never learns that the other side has
 * ended.
 */
export function pipe(from: Socket, to: Socket, rules: PipeRules): Pipe {
  const inTransit: Chunk[] = []
  const held: Chunk[] = []
  let hasLost = false
  let due = 0

  const deliver = (chunk: Chunk): void => {
    if (to.destroyed || to.writableEnded) return
    if (chunk === 'broken') to.resetAndDestroy()
    else if (chunk === 'end') to.end()
    else {
      const altered = rules.alter(chunk)
      if (altered === undefined) return
      to.write(altered)
      rules.report('passed')
    }
  }

  const lose = (chunk: Chunk): void => {
    hasLost = true
    if (typeof chunk !== 'string') rules.report('dropped')
  }

  const route = (chunk: Chunk): void => {
    const flow = rules.flow()
    if (hasLost || flow === 'drop') lose(chunk)
    else if (flow === 'hold') {
      held.push(chunk)
      if (typeof chunk !== 'string') rules.report('held')
    } else deliver(chunk)
  }

  const arrive = (chunk: Chunk): void => {
    const now = performance.now()
    due = Math.max(due, now + rules.latency())
    if (due <= now && inTransit.length === 0) {
      route(chunk)
      return
    }
    // Timers may fire out of order; chunks must not.
    inTransit.push(chunk)
    setTimeout(() => route(inTransit.shift()!), due - now)
  }

  from.on('data', arrive)
  from.on('end', () => arrive('end'))
  from.on('error', () => arrive('broken'))

  return {
    flush: () => {
      if (rules.flow() !== 'hold') for (const chunk of held.splice(0)) route(chunk)
    },
  }
}

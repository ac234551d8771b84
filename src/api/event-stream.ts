import { chunksOf } from './chunks.ts'
import { EventParser } from './event-parser.ts'
import { ProblemError } from './problem.ts'

export interface EventStreamOptions {
  /** Ends the stream. */
  signal?: AbortSignal
  /** The `id` of the last event that was seen. */
  lastEventId?: string
}

/** Connects. Rejects with a ProblemError if the server refuses. */
type Connect = (options: { signal: AbortSignal; lastEventId?: string }) => Promise<Response>

/** Pauses between two connections: the first one, doubled after each failure, and the longest. */
const firstPauseMs = 1000
const longestPauseMs = 30_000
/** The server sends something every 15 seconds. A connection that is silent longer is lost. */
const silentMs = 45_000
/** After a reconnect, the server repeats recent letters: those with these many ids are left out. */
const rememberedIds = 3000

/**
 * The events of a stream that has no end. When the connection is lost, it connects again and
 * continues after the last event. Rejects if the first connection fails, or if the server refuses a
 * later one in a way that does not pass. Ends when the signal aborts.
 */
export async function* readEvents<T>(
  connect: Connect,
  { signal = new AbortController().signal, lastEventId }: EventStreamOptions,
): AsyncGenerator<T> {
  let lastId = lastEventId
  let wasConnected = false
  let failures = 0
  const isNew = newLetters()
  while (!signal.aborted) {
    const connection = new AbortController()
    try {
      const response = await connect({
        signal: AbortSignal.any([signal, connection.signal]),
        ...(lastId === undefined ? {} : { lastEventId: lastId }),
      })
      wasConnected = true
      for await (const { id, data } of parse(response, connection)) {
        failures = 0
        if (id !== undefined) lastId = id
        const event = isNew(JSON.parse(data) as T)
        if (event !== undefined) yield event
      }
    } catch (error) {
      if (signal.aborted) return
      if (!wasConnected || isFinal(error)) throw error
    }
    await pause(failures++, signal)
  }
}

/** Whether connecting again cannot help: the token was revoked, for example. */
function isFinal(error: unknown): boolean {
  return error instanceof ProblemError && !error.problem.retry
}

async function* parse(
  { body }: Response,
  connection: AbortController,
): AsyncGenerator<{ id?: string; data: string }> {
  if (!body) return
  const decoder = new TextDecoder()
  const parser = new EventParser()
  const chunks = chunksOf(body)
  try {
    for (;;) {
      const { value, done } = await within(silentMs, () => chunks.next(), connection)
      if (done) return
      yield* parser.push(decoder.decode(value, { stream: true }))
    }
  } finally {
    connection.abort()
    await chunks.return(undefined)
  }
}

/** Aborts the connection if the step takes longer. */
async function within<T>(
  ms: number,
  step: () => Promise<T>,
  connection: AbortController,
): Promise<T> {
  const timer = setTimeout(() => connection.abort(), ms)
  try {
    return await step()
  } finally {
    clearTimeout(timer)
  }
}

/** Clients that lost the same server do not all come back at the same time. */
function pause(failures: number, signal: AbortSignal): Promise<void> {
  const longest = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(failures, 10))
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, longest * (0.5 + Math.random() / 2))
    signal.addEventListener('abort', end, { once: true })
  })
}

interface LettersEvent {
  type: 'letters'
  items: { id: string }[]
  more?: number
}

/** Leaves out letters that came before. Undefined: nothing of the event is new. */
function newLetters(): <T>(event: T) => T | undefined {
  const ids = new Set<string>()
  const add = (id: string): boolean => {
    if (ids.has(id)) return false
    ids.add(id)
    if (ids.size > rememberedIds) ids.delete(ids.values().next().value!)
    return true
  }
  return (event) => {
    const { type, items, more } = event as LettersEvent
    if (type !== 'letters') return event
    const fresh = items.filter(({ id }) => add(id))
    return fresh.length > 0 || more !== undefined ? { ...event, items: fresh } : undefined
  }
}

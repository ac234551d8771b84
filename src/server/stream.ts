import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Context } from './handlers/handler.ts'
import { toProblem } from './problems.ts'

/** Aborts when the client has gone before the response was complete. */
export function signalOf(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort()
  })
  return controller.signal
}

/**
 * Sends chunks as they come, no faster than the client reads them. An error before the first chunk
 * becomes a problem; a later one ends the connection, so that the client sees an incomplete
 * response.
 */
export async function sendStream(
  reply: FastifyReply,
  type: string,
  chunks: AsyncIterable<string>,
  { signal, onError }: Pick<Context, 'signal' | 'onError'>,
  highWaterMark: number,
): Promise<FastifyReply> {
  const iterator = chunks[Symbol.asyncIterator]()
  const first = await iterator.next()
  const all = async function* (): AsyncGenerator<Buffer> {
    try {
      for (let next = first; !next.done; next = await iterator.next()) yield Buffer.from(next.value)
    } catch (error) {
      if (!signal.aborted && toProblem(error).status >= 500) onError(error)
      throw error
    } finally {
      await iterator.return?.()
    }
  }
  const stream = Readable.from(all(), { objectMode: false, highWaterMark })
  return reply.type(type).send(stream)
}

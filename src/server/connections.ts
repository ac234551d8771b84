import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { problemType } from '../api/problem.ts'
import type { Clock } from '../clock/clock.ts'
import { unreadBodyMs } from './limits.ts'
import { toProblem } from './problems.ts'

/** Answers to bytes that are not an HTTP request, by the code of the parser. */
const answers: { [code: string]: { status: number; reason: string; detail: string } } = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: 'Request Header Fields Too Large',
    detail: 'the headers of the request have more than 16 KiB',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    reason: 'Request Timeout',
    detail: 'the request did not arrive in time',
  },
}
const invalid = {
  status: 400,
  reason: 'Bad Request',
  detail: 'the request is not valid HTTP/1.1',
}

/** Answers a request that is not valid HTTP, and ends its connection. */
export function answerInvalidHttp(error: Error & { code?: string }, socket: Socket): void {
  // The client is gone.
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const { status, reason, detail } = answers[error.code ?? ''] ?? invalid
  const body = JSON.stringify(toProblem(Object.assign(new Error(detail), { statusCode: status })))
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\ncontent-type: ${problemType}\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  )
}

/**
 * Ends the connection of a request that was answered before its body had arrived, such as one that
 * was denied. Otherwise the sender could occupy the connection as long as it sends.
 */
export function endUnreadBodies(app: FastifyInstance, clock: Clock): void {
  app.addHook('onResponse', async ({ raw }) => {
    if (raw.complete || raw.destroyed) return
    const cancel = clock.timer(unreadBodyMs, () => raw.socket.destroy(), { background: true })
    raw.once('close', cancel)
  })
}

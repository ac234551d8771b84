import type { FastifyInstance } from 'fastify'
import type { Clock } from '../clock/clock.ts'
import { endsWithin } from '../clock/ends-within.ts'

/** How long requests in flight may take once a server closes. */
const drainMs = 10_000
/** How often connections are closed whose request has ended. They would wait for their next one. */
const idleMs = 100

/**
 * Closes a server: it accepts no connection any more, and answers requests on open ones with 503.
 * Requests in flight may finish. What is open after 10 seconds is ended, such as a body that does
 * not arrive.
 */
export async function closeServer(app: FastifyInstance, clock: Clock): Promise<void> {
  const closed = app.close()
  const deadlineMs = clock.mono() + drainMs
  while (!(await endsWithin(clock, closed, idleMs)))
    if (clock.mono() < deadlineMs) app.server.closeIdleConnections()
    else app.server.closeAllConnections()
}

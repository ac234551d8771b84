import { request } from 'node:http'
import { connect } from 'node:net'
import Fastify from 'fastify'
import { describe, expect, it } from 'vitest'
import { limitRequests } from '../../src/server/admission.ts'
import { toProblem } from '../../src/server/problems.ts'

/** A server with a route that answers when it is told to. */
function slowApp(maxRequests: number): {
  app: ReturnType<typeof Fastify>
  send: (path?: string, headers?: Record<string, string>) => Promise<{ statusCode: number }>
  begun: () => Promise<void>
  answer: () => void
} {
  const app = Fastify({ return503OnClosing: false })
  limitRequests(app, maxRequests)
  app.setErrorHandler((error, _, reply) => {
    const problem = toProblem(error)
    return reply.code(problem.status).send(problem)
  })
  const answers: (() => void)[] = []
  let onBegun = Promise.withResolvers<void>()
  const wait = (): Promise<string> =>
    new Promise((resolve) => {
      answers.push(() => resolve('ok'))
      onBegun.resolve()
    })
  app.get('/slow', wait)
  app.post('/slow', wait)
  app.get('/livez', async () => 'ok')
  return {
    app,
    send: (path = '/slow', headers) => app.inject({ url: path, ...(headers ? { headers } : {}) }),
    begun: async () => {
      await onBegun.promise
      onBegun = Promise.withResolvers()
    },
    answer: () => answers.shift()!(),
  }
}

describe('limitRequests', () => {
  it('rejects what exceeds the requests in flight, until one has ended', async () => {
    const { send, begun, answer } = slowApp(1)
    const first = send()
    await begun()
    const rejected = await send()
    expect(rejected.statusCode).toBe(503)
    answer()
    expect((await first).statusCode).toBe(200)
    const next = send()
    await begun()
    answer()
    expect((await next).statusCode).toBe(200)
  })

  it('always answers probes', async () => {
    const { send, begun, answer } = slowApp(1)
    const first = send()
    await begun()
    expect((await send('/livez')).statusCode).toBe(200)
    answer()
    await first
  })

  it('rejects bodies that would fill the memory', async () => {
    const { app } = slowApp(1000)
    const chunked = { 'transfer-encoding': 'chunked', 'content-type': 'text/plain' }
    const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
    const open = Array.from({ length: 26 }, () => {
      const one = request({ port, method: 'POST', path: '/slow', headers: chunked })
      one.write('x')
      return one
    })
    const status = await Promise.race(
      open.map(
        (one) =>
          new Promise<number>((resolve, reject) => {
            one.once('response', (response) => resolve(response.statusCode!))
            one.once('error', reject)
          }),
      ),
    )
    expect(status).toBe(503)
    for (const one of open) one.on('error', () => {}).destroy()
    await app.close()
  })

  it('rejects requests that arrive while the server stops', async () => {
    const { app, begun, answer } = slowApp(10)
    const stopping = Promise.withResolvers<void>()
    app.addHook('preClose', async () => stopping.resolve())
    const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
    const socket = connect(Number(port), '127.0.0.1')
    const get = 'GET /slow HTTP/1.1\r\nhost: x\r\n\r\n'
    socket.write(get)
    await begun()
    const closed = app.close()
    await stopping.promise
    const arrived = Promise.withResolvers<void>()
    app.server.once('request', () => arrived.resolve())
    socket.write(get)
    await arrived.promise
    answer()
    let text = ''
    for await (const chunk of socket.setEncoding('utf8')) text += chunk as string
    await closed
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
    expect(statuses).toEqual(['200', '503'])
    expect(text).toContain('"code":"SERVER_STOPPING"')
  })
})

import { expect, it } from 'vitest'
import { startHealthServer } from '../../src/loops/health-server.ts'

it('answers on two paths and nowhere else', async () => {
  let ready = true
  const server = await startHealthServer({
    port: 0,
    host: '127.0.0.1',
    ready: async () => ({ ready, body: { status: ready ? 'healthy' : 'unhealthy' } }),
  })
  try {
    const ask = async (path: string, method = 'GET'): Promise<[number, unknown]> => {
      const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method })
      return [response.status, await response.json()]
    }
    expect(await ask('/health/live')).toEqual([200, { status: 'healthy' }])
    expect(await ask('/health/ready?now')).toEqual([200, { status: 'healthy' }])
    ready = false
    expect(await ask('/health/ready')).toEqual([503, { status: 'unhealthy' }])
    expect(await ask('/health/live')).toEqual([200, { status: 'healthy' }])
    expect(await ask('/metrics')).toEqual([404, { status: 'not found' }])
    expect(await ask('/health/live', 'POST')).toEqual([404, { status: 'not found' }])
  } finally {
    await server.close()
    await server.close()
  }
})

it.each([
  ['breaks', () => Promise.reject(new Error('secret'))],
  ['cannot be written as JSON', () => Promise.resolve({ ready: true, body: { depth: 1n } })],
])('is not ready if a check %s', async (_, ready) => {
  const server = await startHealthServer({ port: 0, host: '127.0.0.1', ready })
  const response = await fetch(`http://127.0.0.1:${server.port}/health/ready`)
  expect(response.status).toBe(503)
  expect(await response.text()).not.toContain('secret')
  await server.close()
})

it('rejects at once if the port is in use', async () => {
  const ready = async (): Promise<{ ready: boolean; body: object }> => ({ ready: true, body: {} })
  const server = await startHealthServer({ port: 0, host: '127.0.0.1', ready })
  const { port } = server
  await expect(startHealthServer({ port, host: '127.0.0.1', ready })).rejects.toThrow('EADDRINUSE')
  await server.close()
})

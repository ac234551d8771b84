import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { problemType } from '../../src/api/problem.ts'
import { aServer, type TestServer } from './a-server.ts'
import { sendRaw } from './send-raw.ts'

const folder = join(import.meta.dirname, '../../dist/web')
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.includes('.') && name !== 'index.html',
)

let server: TestServer
beforeAll(async () => {
  server = await aServer({}, {}, { pages: true })
})
afterAll(() => server.close())

const get = (path: string, accept?: string) =>
  sendRaw(server.url, 'GET', path, { headers: accept === undefined ? {} : { accept } })

describe('the dashboard', () => {
  it('needs no token, and is asked for again each time', async () => {
    const { status, headers, body } = await get('/')
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
    })
    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("default-src 'self'")
    const nonce = /'nonce-([^']+)'/.exec(policy)![1]!
    expect(body).toContain(`<meta name="csp-nonce" content="${nonce}"`)
    expect(body).not.toBe((await get('/')).body)
  })

  it.each(files)('%s is served as it is', async (file) => {
    const { status, body, headers } = await get(`/${file}`)
    expect(status).toBe(200)
    expect(body).toBe(readFileSync(join(folder, file), 'utf8'))
    const isHashed = file.startsWith('assets/')
    expect(headers['cache-control']).toBe(
      isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    )
  })

  it('has no script or style that its content security policy forbids', () => {
    const html = readFileSync(join(folder, 'index.html'), 'utf8')
    expect(html).not.toMatch(/\sstyle=|\son\w+=|<style|<script(?![^>]*\ssrc=)/)
  })

  it.each(['/letters/01995c3a', '/queues/orders%2Fpaid.v2', '/settings/tokens'])(
    'is the answer for %s in a browser',
    async (path) => {
      const { status, headers } = await get(path, 'text/html,*/*')
      expect(status).toBe(200)
      expect(headers['content-type']).toContain('text/html')
    },
  )

  it.each([
    ['a path of the API', '/api/nothing', 'text/html'],
    ['the API itself', '/api', 'text/html'],
    ['a program', '/letters/01995c3a', 'application/json'],
    ['a missing file', '/missing.js', 'text/html'],
    ['a path that climbs', '/../package.json', 'text/html'],
    ['an encoded path that climbs', '/%2e%2e/package.json', 'text/html'],
    ['an encoded slash', '/..%2f..%2f..%2fpackage.json', 'text/html'],
    ['a backslash', String.raw`/..\..\package.json`, 'text/html'],
    ['a double encoding', '/%252e%252e/package.json', 'text/html'],
    ['a null byte', '/index.html%00.js', 'text/html'],
  ])('is not the answer for %s', async (_, path, accept) => {
    const { status, headers } = await get(path, accept)
    expect(status).toBe(404)
    expect(headers['content-type']).toContain(problemType)
  })
})

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import axe, { type AxeResults } from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { documentationPolicy } from '../../src/server/documentation.ts'
import { launchBrowser } from '../web/browser.ts'
import { aServer, type TestServer } from './a-server.ts'
import { atDepth } from '../depth.ts'

const site = join(import.meta.dirname, '../../dist/docs')
if (!existsSync(site)) throw new Error(`${site} is missing: run npm run docs:site`)

const files = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((path) =>
  /\.\w+$/.test(path),
)
const pages = files.filter((path) => path.endsWith('.html') && path !== '404.html')

let server: TestServer
let browser: Browser
beforeAll(async () => {
  server = await aServer({}, {}, { pages: true })
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  await server?.close()
})

/** Reads the whole response: the server waits for one that is read in part when it closes. */
async function read(url: string): Promise<{ status: number; headers: Headers; body: Buffer }> {
  const response = await fetch(url, { headers: { accept: 'text/html' } })
  const { status, headers } = response
  return { status, headers, body: Buffer.from(await response.arrayBuffer()) }
}

/** Errors in the console, which violations of the policy are, and requests to other servers. */
function problemsOf(page: Page): string[] {
  const problems: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('request', (request) => {
    if (!request.url().startsWith(server.url) && !request.url().startsWith('data:'))
      problems.push(`requests ${request.url()}`)
  })
  return problems
}

describe('the documentation', () => {
  it('is served as it was built, without a token', async () => {
    for (const path of files) {
      const { status, body } = await read(`${server.url}/docs/${path}`)
      // toEqual compares buffers a byte at a time.
      const isSame = body.equals(readFileSync(join(site, path)))
      expect([path, status, isSame]).toEqual([path, 200, true])
    }
  })

  it('is cached for a year only where the name of a file has its hash', async () => {
    const [asset] = readdirSync(join(site, 'assets')).filter((name) => name.startsWith('app.'))
    const cacheOf = async (path: string): Promise<string | null> => {
      const { status, headers } = await read(`${server.url}/docs/${path}`)
      expect(status).toBe(200)
      return headers.get('cache-control')
    }
    expect(await cacheOf('')).toBe('no-cache')
    expect(await cacheOf(`assets/${asset}`)).toContain('immutable')
  })

  it.each(['/docs/missing', '/docs/guides', '/docs/..%2fserver/server.js'])(
    'does not have %s',
    async (path) => {
      const { status } = await read(`${server.url}${path}`)
      expect(status).toBe(404)
    },
  )

  it('has the same inline scripts on every page, and allows no others', () => {
    const policyOf = (path: string): string =>
      documentationPolicy(readFileSync(join(site, path), 'utf8'))
    const policy = policyOf('index.html')
    expect(policy).toContain("script-src 'self' 'sha256-")
    expect(policy).not.toMatch(/script-src[^;]*unsafe/)
    expect(pages.filter((path) => policyOf(path) !== policy)).toEqual([])
  })

  // Kinds of pages. All have the same scripts, as the test above shows.
  const kinds = ['getting-started.html', 'operating/sizing.html', 'reference/cli.html']
  const inShort = ['index.html', 'guides/dashboard.html', 'reference/http.html']
  it.each(atDepth(inShort, [...inShort, ...kinds]))(
    '%s keeps to its content security policy and to this server',
    async (path) => {
      const page = await browser.newPage()
      const problems = problemsOf(page)
      await page.goto(`${server.url}/docs/${path}`)
      expect(await page.locator('h1').count()).toBe(1)
      expect(problems).toEqual([])
      await page.close()
    },
  )

  it('changes between light and dark within its content security policy', async () => {
    const page = await browser.newPage()
    const problems = problemsOf(page)
    await page.goto(`${server.url}/docs/`)
    await page.locator('.VPSwitchAppearance').first().click()
    await page.locator('html.dark').waitFor()
    expect(problems).toEqual([])
    await page.close()
  })

  const narrow = ['index.html', 'guides/cli.html', 'reference/http.html']
  it.each(atDepth(narrow, [...narrow, 'getting-started.html']))(
    '%s fits a phone, where only tables and code scroll sideways',
    async (path) => {
      const page = await browser.newPage({ viewport: { width: 390, height: 800 } })
      await page.goto(`${server.url}/docs/${path}`)
      const width = await page.evaluate('document.documentElement.scrollWidth')
      expect(width).toBe(390)
      await page.close()
    },
  )

  it('has enough contrast in light and in dark', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await browser.newPage({ colorScheme })
      await page.goto(`${server.url}/docs/getting-started.html`)
      await page.evaluate(axe.source)
      const { violations } = await page.evaluate<AxeResults>(
        `axe.run('main', { runOnly: ['color-contrast'] })`,
      )
      const found = violations.flatMap(({ nodes }) => nodes.map(({ html }) => html))
      expect([colorScheme, found]).toEqual([colorScheme, []])
      await page.close()
    }
  })

  it('finds pages by their words', async () => {
    const page = await browser.newPage()
    await page.goto(`${server.url}/docs/`)
    await page.locator('.VPNavBarSearch button').first().click()
    await page.locator('.search-input').fill('idempotency key')
    await page.locator('.results .result').first().waitFor()
    await page.locator('.results .result').first().click()
    await page.waitForURL(/\.html#/)
    expect(await page.locator('main').innerText()).toMatch(/idempotency key/i)
    await page.close()
  })
})

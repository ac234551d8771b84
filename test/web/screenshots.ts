// Writes pictures of every page of the dashboard in all its states: npm run screenshots [folder].
// Six of them are part of the documentation. The dashboard must be built.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { openDashboard, type TestDashboard } from './a-dashboard.ts'
import { launchBrowser, openSignedIn } from './browser.ts'
import {
  emptyPages,
  openSampleDashboard,
  waitUntilLoaded,
  type SamplePage,
} from './sample-pages.ts'

const folder = process.argv[2] ?? 'screenshots'
const docsFolder = join(import.meta.dirname, '../../docs/public/screenshots')
const inDocs = ['overview', 'letters', 'letter', 'group', 'bulk-action', 'queue']

const looks: Record<string, BrowserContextOptions> = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 } },
}

/** Everything but the session and the live feed. */
const data = /\/api\/(?!session|events)/

async function photograph(
  browser: Browser,
  dashboard: TestDashboard,
  pages: readonly SamplePage[],
  { state, look }: { state: 'full' | 'empty' | 'loading' | 'error'; look: string },
): Promise<void> {
  const options = { reducedMotion: 'reduce' as const, ...looks[look] }
  const { page } = await openSignedIn(browser, dashboard, '/settings', options)
  const release = await intercept(page, state)
  for (const [name, path] of pages) {
    await page.goto(path)
    await page
      .getByRole('heading', { level: 1 })
      .or(page.locator('[aria-busy], main'))
      .first()
      .waitFor()
    if (state === 'full' || state === 'empty') await waitUntilLoaded(page)
    if (state === 'error') await page.getByRole('alert').first().waitFor()
    await page.screenshot({ path: join(folder, `${name}-${state}-${look}.png`) })
    if (state === 'full' && look === 'light' && inDocs.includes(name))
      await page.screenshot({ path: join(docsFolder, `${name}.png`) })
  }
  release()
  await page.context().close()
}

/** Makes the answers of the server late or wrong. The returned function ends the wait of all. */
async function intercept(page: Page, state: string): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (state === 'loading')
    await page.route(data, async (route) => {
      await promise
      await route.abort().catch(() => {})
    })
  if (state === 'error')
    await page.route(data, (route) =>
      route.fulfill({
        status: 500,
        contentType: 'application/problem+json',
        json: {
          type: 'about:blank',
          title: 'Internal Server Error',
          status: 500,
          code: 'INTERNAL',
          detail: 'the store did not answer',
          retry: true,
        },
      }),
    )
  return resolve
}

await mkdir(folder, { recursive: true })
await mkdir(docsFolder, { recursive: true })
const browser = await launchBrowser()
const full = await openSampleDashboard()
const empty = await openDashboard()
try {
  for (const look of Object.keys(looks)) {
    await photograph(browser, full, full.pages, { state: 'full', look })
    await photograph(browser, empty, emptyPages, { state: 'empty', look })
    await photograph(browser, full, full.pages, { state: 'loading', look })
    await photograph(browser, full, full.pages, { state: 'error', look })
  }
} finally {
  await browser.close()
  await full.close()
  await empty.close()
}

import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDashboard, type TestDashboard } from './a-dashboard.ts'
import { seriousFindings } from './axe.ts'
import { launchBrowser, openPage, openSignedIn, signIn } from './browser.ts'
import { dashboardStores } from './dashboard-stores.ts'
import { emptyPages, waitUntilLoaded } from './sample-pages.ts'

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

describe.each(dashboardStores)('a new installation on %s', (_, open) => {
  let dashboard: TestDashboard
  beforeAll(async () => {
    dashboard = await openDashboard(open)
  })
  afterAll(() => dashboard?.close())

  it('shows how to send the first letter, and shows the letter when it arrives', async () => {
    const { page, problems } = await openPage(browser, dashboard.url)
    await signIn(page, await dashboard.token())
    await page.getByText('Waiting for the first letter').waitFor()
    await dashboard.client.capture({
      queue: 'charge-card',
      json: { order: 42 },
      error: { message: 'socket hang up', code: 'ECONNRESET' },
    })
    await page.getByRole('link', { name: 'charge-card' }).waitFor()
    await page
      .getByRole('link', { name: /socket hang up/ })
      .first()
      .waitFor()
    expect(problems).toEqual([])
    await page.context().close()
  })
})

describe('pages without data', () => {
  let dashboard: TestDashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard?.close())

  it('fit a phone without scrolling to the side, and are accessible', async () => {
    const viewport = { width: 390, height: 844 }
    const { page, problems } = await openSignedIn(browser, dashboard, '/', { viewport })
    for (const [name, path] of emptyPages) {
      await page.goto(path)
      await waitUntilLoaded(page)
      const width = await page.evaluate<number>('document.documentElement.scrollWidth')
      expect(width, name).toBe(viewport.width)
      expect(await seriousFindings(page), name).toEqual([])
    }
    expect(problems).toEqual([])
    await page.context().close()
  })
})

import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDashboard, type TestDashboard } from './a-dashboard.ts'
import { launchBrowser, openPage, openSignedIn, signIn } from './browser.ts'
import { dashboardStores } from './dashboard-stores.ts'

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

describe.each(dashboardStores)('who uses the dashboard, on %s', (_, open) => {
  let dashboard: TestDashboard
  let letterId: string
  beforeAll(async () => {
    dashboard = await openDashboard(open, { alerts: false })
    const { id } = await dashboard.client.capture({
      queue: 'charge-card',
      json: { card: 'secret payload' },
      error: { message: 'secret message' },
      maxRetries: 0,
    })
    letterId = id
  })
  afterAll(() => dashboard?.close())

  describe('a session', () => {
    it('begins with a token and leads to the page that was asked for', async () => {
      const { page, problems } = await openPage(browser, dashboard.url)
      await page.goto('/queues/charge-card')
      await page.getByLabel('Token').fill('rdr_wrong')
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByText(/token/i).and(page.locator('[class*=error]')).waitFor()
      await page.getByLabel('Token').fill(await dashboard.token())
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByRole('heading', { name: 'charge-card' }).waitFor()
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('ends when the reader signs out', async () => {
      const { page, problems } = await openPage(browser, dashboard.url)
      await signIn(page, await dashboard.token())
      await page.getByRole('button', { name: 'Signed in as mia' }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      await page.getByRole('heading', { name: 'Sign in to Redrive' }).waitFor()
      await page.goto('/letters')
      await page.getByRole('heading', { name: 'Sign in to Redrive' }).waitFor()
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('begins with the code of an address, which works once and leaves the address', async () => {
      const address = `/letters#code=${dashboard.code()}`
      const { page, problems } = await openPage(browser, dashboard.url)
      await page.goto(address)
      await page.getByRole('button', { name: 'Signed in as zoe' }).waitFor()
      expect(page.url()).toBe(`${dashboard.url}/letters`)
      await page.context().close()
      const other = await openPage(browser, dashboard.url)
      await other.page.goto(address)
      await other.page.getByRole('heading', { name: 'Sign in to Redrive' }).waitFor()
      expect([...problems, ...other.problems]).toEqual([])
      await other.page.context().close()
    })

    it('can begin at an identity provider, if the server has one', async () => {
      const oidc = { issuer: 'http://127.0.0.1:9', clientId: 'redrive', clientSecret: 'secret' }
      const served = await openDashboard(
        undefined,
        { alerts: false },
        { settings: { publicUrl: 'http://127.0.0.1:9', oidc } },
      )
      const name = 'Sign in with your organization'
      const { page } = await openPage(browser, served.url)
      await page.goto('/sign-in')
      const href = await page.getByRole('link', { name }).getAttribute('href')
      expect(href).toBe('/login/oidc')
      await page.context().close()
      await served.close()
      const without = await openPage(browser, dashboard.url)
      const methods = without.page.waitForResponse(/\/api\/session\/methods/)
      await without.page.goto('/sign-in')
      await (await methods).finished()
      await without.page.getByRole('heading', { name: 'Sign in to Redrive' }).waitFor()
      expect(await without.page.getByRole('link', { name }).count()).toBe(0)
      await without.page.context().close()
    })
  })

  describe('a role', () => {
    const post = (page: Awaited<ReturnType<typeof openPage>>['page'], path: string, data = {}) =>
      page.request.post(path, { data, headers: { 'x-redrive-csrf': '1' } })

    it('viewer sees letters without their content and without actions', async () => {
      const as = { name: 'vera', role: 'viewer' } as const
      const { page, problems } = await openSignedIn(browser, dashboard, `/letters/${letterId}`, {
        as,
      })
      await page.getByText('charge-card').first().waitFor()
      await page
        .getByText(/payload:read/)
        .first()
        .waitFor()
      for (const name of ['Retry now', 'Edit…', 'Add note'])
        expect(await page.getByRole('button', { name }).count()).toBe(0)
      expect(await page.locator('body').textContent()).not.toContain('secret')
      expect((await post(page, `/api/letters/${letterId}/retry`)).status()).toBe(403)
      await page.goto('/queues/charge-card')
      await page.getByRole('link', { name: 'Show letters' }).waitFor()
      await page.getByText('By state').waitFor()
      expect(await page.getByRole('button', { name: /^Pause/ }).count()).toBe(0)
      const pause = await post(page, '/api/queues/charge-card/pause', { reason: 'no' })
      expect(pause.status()).toBe(403)
      await page.goto('/settings/tokens')
      await page.getByText('This page is for administrators').waitFor()
      expect((await page.request.get('/api/tokens')).status()).toBe(403)
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('operator acts on letters, but neither removes them nor creates tokens', async () => {
      const as = { name: 'olga', role: 'operator' } as const
      const { page, problems } = await openSignedIn(browser, dashboard, `/letters/${letterId}`, {
        as,
      })
      await page.getByRole('button', { name: 'Retry now' }).waitFor()
      await page.getByRole('button', { name: 'More actions' }).click()
      await page.getByRole('menuitem', { name: /^Archive/ }).waitFor()
      expect(await page.getByRole('menuitem', { name: /^Remove/ }).count()).toBe(0)
      await page.goto('/settings/tokens')
      await page.getByText('This page is for administrators').waitFor()
      expect((await post(page, '/api/tokens', { name: 'x', role: 'viewer' })).status()).toBe(403)
      expect(problems).toEqual([])
      await page.context().close()
    })

    it('admin sees every action', async () => {
      const { page, problems } = await openSignedIn(browser, dashboard, `/letters/${letterId}`)
      await page.getByRole('button', { name: 'More actions' }).click()
      await page.getByRole('menuitem', { name: /^Remove/ }).waitFor()
      await page.goto('/settings/tokens')
      await page.getByRole('button', { name: 'Create a token' }).waitFor()
      expect(problems).toEqual([])
      await page.context().close()
    })
  })
})

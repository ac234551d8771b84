import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { openDashboard } from './a-dashboard.ts'
import { openPage } from './browser.ts'
import { benchForTests } from './dashboard-bench.ts'
import { dashboardStores } from './dashboard-stores.ts'

describe.each(dashboardStores)('who uses the dashboard, on %s', (_, open) => {
  const bench = benchForTests(open)
  let letterId: string
  beforeAll(async () => {
    const { id } = await bench.capture({
      queue: 'charge-card',
      json: { card: 'secret payload' },
      error: { message: 'secret message' },
    })
    letterId = id
  })

  describe('a session', () => {
    it('begins with a token and leads to the page that was asked for', async () => {
      await bench.visitSignedOut('/queues/charge-card', async (page) => {
        await page.getByLabel('Token').fill('rdr_wrong')
        await page.getByRole('button', { name: 'Sign in', exact: true }).click()
        await page.getByText(/token/i).and(page.locator('[class*=error]')).waitFor()
        await page.getByLabel('Token').fill(await bench.dashboard.token())
        await page.getByRole('button', { name: 'Sign in', exact: true }).click()
        await page.getByRole('heading', { name: 'charge-card' }).waitFor()
        expect(new URL(page.url()).pathname).toBe('/queues/charge-card')
      })
    })

    it('ends when the reader signs out', async () => {
      await bench.visit('/settings', async (page) => {
        await page.getByRole('button', { name: 'Signed in as mia' }).click()
        await page.getByRole('menuitem', { name: 'Sign out' }).click()
        const signIn = page.getByRole('heading', { name: 'Sign in to Redrive' })
        await signIn.waitFor()
        await page.goto('/letters')
        await signIn.waitFor()
        expect(new URL(page.url()).pathname).toBe('/sign-in')
      })
    })

    it('begins with the code of an address, which works once and leaves the address', async () => {
      const { dashboard } = bench
      const address = `/letters#code=${dashboard.code()}`
      await bench.visitSignedOut(address, async (page) => {
        await page.getByRole('button', { name: 'Signed in as zoe' }).waitFor()
        expect(page.url()).toBe(`${dashboard.url}/letters`)
      })
      await bench.visitSignedOut(address, async (page) => {
        await page.getByRole('heading', { name: 'Sign in to Redrive' }).waitFor()
      })
    })

    it('can begin at an identity provider, if the server has one', async () => {
      const oidc = { issuer: 'http://127.0.0.1:9', clientId: 'redrive', clientSecret: 'secret' }
      const served = await openDashboard(
        undefined,
        { alerts: false },
        { settings: { publicUrl: 'http://127.0.0.1:9', oidc } },
      )
      const link = (page: Page) =>
        page.getByRole('link', { name: 'Sign in with your organization' })
      const { page } = await openPage(bench.browser, served.url)
      await page.goto('/sign-in')
      expect(await link(page).getAttribute('href')).toBe('/login/oidc')
      await page.context().close()
      await served.close()
      await bench.visitSignedOut('/sign-in', async (page) => {
        const methods = page.waitForResponse(/\/api\/session\/methods/)
        await page.reload()
        await (await methods).finished()
        await page.getByRole('heading', { name: 'Sign in to Redrive' }).waitFor()
        expect(await link(page).count()).toBe(0)
      })
    })
  })

  describe('a role', () => {
    const post = (page: Page, path: string, data = {}) =>
      page.request.post(path, { data, headers: { 'x-redrive-csrf': '1' } })

    it('viewer sees letters without their content and without actions', async () => {
      const as = { name: 'vera', role: 'viewer' } as const
      await bench.visit(
        `/letters/${letterId}`,
        async (page) => {
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
        },
        as,
      )
    })

    it('operator acts on letters, but neither removes them nor creates tokens', async () => {
      const as = { name: 'olga', role: 'operator' } as const
      await bench.visit(
        `/letters/${letterId}`,
        async (page) => {
          await page.getByRole('button', { name: 'Retry now' }).waitFor()
          await page.getByRole('button', { name: 'More actions' }).click()
          await page.getByRole('menuitem', { name: /^Archive/ }).waitFor()
          expect(await page.getByRole('menuitem', { name: /^Remove/ }).count()).toBe(0)
          await page.goto('/settings/tokens')
          await page.getByText('This page is for administrators').waitFor()
          expect((await post(page, '/api/tokens', { name: 'x', role: 'viewer' })).status()).toBe(
            403,
          )
        },
        as,
      )
    })

    it('admin sees every action', async () => {
      await bench.visit(`/letters/${letterId}`, async (page) => {
        await page.getByRole('button', { name: 'More actions' }).click()
        await page.getByRole('menuitem', { name: /^Remove/ }).waitFor()
        await page.goto('/settings/tokens')
        await page.getByRole('button', { name: 'Create a token' }).waitFor()
        expect(new URL(page.url()).pathname).toBe('/settings/tokens')
      })
    })
  })
})

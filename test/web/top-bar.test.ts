import { describe, expect, it } from 'vitest'
import { benchForTests } from './dashboard-bench.ts'
import { dashboardStores } from './dashboard-stores.ts'

describe.each(dashboardStores)('the top bar and the overview, on %s', (_, open) => {
  const bench = benchForTests(open, {}, {}, { timezoneId: 'Asia/Tokyo' })

  it('switch the times of all pages to UTC, and keep the choice', async () => {
    const { id } = await bench.capture({ queue: 'zones' })
    await bench.visit(
      `/letters/${id}`,
      async (page) => {
        const { deadLetteredAt } = await bench.client.getLetter({ id })
        const inUtc = `${deadLetteredAt.slice(0, 10)} ${deadLetteredAt.slice(11, 19)} UTC`
        await page.getByRole('button', { name: 'Local time' }).waitFor()
        expect(await page.getByText(inUtc).count()).toBe(0)
        await page.getByRole('button', { name: 'Local time' }).click()
        await page.getByText(inUtc).first().waitFor()
        await page.reload()
        await page.getByText(inUtc).first().waitFor()
      },
      // The choice is kept in the browser of this person.
      { name: 'zoe' },
    )
  })

  it('tell whether the server is well', async () => {
    await bench.visit('/letters', async (page) => {
      await page.getByRole('button', { name: 'Server: healthy' }).hover()
      await page.getByText('The server reports no problems.').waitFor()
      expect(await bench.client.getHealth()).toMatchObject({ ok: true })
    })
  })

  it('find queues, groups, letters by their id, and words', async () => {
    const error = { name: 'PaletteError', message: 'nobody expects this' }
    const { id } = await bench.capture({ queue: 'palette-queue', error })
    await bench.visit('/settings', async (page) => {
      for (const [text, label, path] of [
        ['palette-queue', 'palette-queue', /\/queues\/palette-queue$/],
        ['nobody expects', 'nobody expects this', /\/groups\/v1-/],
        [id, `Open letter ${id}`, new RegExp(`/letters/${id}$`)],
        ['no such name', 'Search letters for “no such name”', /\/letters\?.*no.such.name/],
      ] as const) {
        await page.keyboard.press('Control+k')
        const field = page.getByRole('textbox', { name: 'Search', exact: true })
        await field.fill(text)
        await page.getByRole('dialog').getByText(label).first().waitFor()
        await field.press('Enter')
        await expect.poll(() => page.url()).toMatch(path)
        await page.getByRole('dialog').waitFor({ state: 'detached' })
      }
    })
  })

  it('lead to every page, and say when there is no such page', async () => {
    await bench.visit('/', async (page) => {
      const navigation = page.getByRole('navigation')
      for (const name of ['Letters', 'Groups', 'Bulk actions', 'Queues', 'Alerts', 'Settings']) {
        await navigation.getByRole('link', { name: new RegExp(`^${name}`) }).click()
        await page.getByRole('heading', { level: 1, name }).waitFor()
      }
      await page.goto('/nowhere')
      await page.getByText('There is no such page').waitFor()
      await page.getByRole('link', { name: 'Open the overview' }).click()
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
      expect(new URL(page.url()).pathname).toBe('/')
    })
  })

  it('keep the time range of the overview in the address, and lead to causes, queues and letters', async () => {
    await bench.capture({ queue: 'overview-queue', error: { message: 'overview failed' } })
    await bench.visit('/', async (page) => {
      await page.getByText('7 days', { exact: true }).click()
      await page.getByText('Open letters by state, 7 days').waitFor()
      expect(new URL(page.url()).search).toBe('?range=7d')
      await page.reload()
      await page.getByText('Open letters by state, 7 days').waitFor()
      await page.getByRole('link', { name: /^Parked/ }).click()
      await page.waitForURL(/\/letters\?state=parked/)
      await page.goBack()
      await page.getByRole('link', { name: 'overview-queue' }).click()
      await page.waitForURL(/\/queues\/overview-queue$/)
    })
  })
})

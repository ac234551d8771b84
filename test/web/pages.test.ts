import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seriousFindings } from './axe.ts'
import { launchBrowser, openSignedIn, type WatchedPage } from './browser.ts'
import { dashboardStores } from './dashboard-stores.ts'
import { openSampleDashboard, waitUntilLoaded, type SampleDashboard } from './sample-pages.ts'

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

/** Calls `check` on every page, and returns what it found by the name of the page. */
async function visitAll<T>(
  dashboard: SampleDashboard,
  { page }: WatchedPage,
  check: () => Promise<T[]>,
): Promise<Record<string, T[]>> {
  const found: Record<string, T[]> = {}
  for (const [name, path] of dashboard.pages) {
    await page.goto(path)
    await waitUntilLoaded(page)
    const findings = await check()
    if (findings.length > 0) found[name] = findings
  }
  return found
}

/** What a narrow page may break: names of links and buttons, and tables that scroll. */
const phoneRules = ['link-name', 'button-name', 'scrollable-region-focusable']

/** Runs in the page: its width, and the elements that reach over the right border. */
const describeWidth = `({
  scrollWidth: document.documentElement.scrollWidth,
  wide: [...document.querySelectorAll('main *')]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
    .slice(0, 5)
    .map((element) => element.tagName + ' ' + element.className),
})`

describe('every page', () => {
  let dashboard: SampleDashboard
  beforeAll(async () => {
    dashboard = await openSampleDashboard()
  })
  afterAll(() => dashboard?.close())

  it.each(['light', 'dark'] as const)(
    'is accessible in the %s theme',
    async (colorScheme) => {
      const opened = await openSignedIn(browser, dashboard, '/', {
        colorScheme,
        reducedMotion: 'reduce',
      })
      // The theme changes colours only, so that the other rules run once.
      const options = colorScheme === 'dark' ? { runOnly: ['color-contrast'] } : {}
      expect(
        await visitAll(dashboard, opened, () => seriousFindings(opened.page, options)),
      ).toEqual({})
      expect(opened.problems).toEqual([])
      await opened.page.context().close()
    },
    180_000,
  )

  it('keeps the theme that the reader has chosen', async () => {
    const { page, problems } = await openSignedIn(browser, dashboard, '/letters')
    const scheme = (): Promise<string | null> =>
      page.locator('html').getAttribute('data-mantine-color-scheme')
    expect(await scheme()).toBe('light')
    await page.getByRole('button', { name: 'Theme' }).click()
    await page.getByRole('menuitem', { name: 'Dark' }).click()
    await expect.poll(scheme).toBe('dark')
    await page.reload()
    await page.getByRole('grid', { name: 'Letters' }).waitFor()
    expect(await scheme()).toBe('dark')
    expect(problems).toEqual([])
    await page.context().close()
  })
})

describe.each(dashboardStores)('the pages with data, on %s', (_, open) => {
  let dashboard: SampleDashboard
  beforeAll(async () => {
    dashboard = await openSampleDashboard(open)
  })
  afterAll(() => dashboard?.close())

  it('show no problem, and fit a phone with their names and keys', async () => {
    const viewport = { width: 390, height: 844 }
    const opened = await openSignedIn(browser, dashboard, '/', { viewport })
    const findWide = async (): Promise<string[]> => {
      const { scrollWidth, wide } = await opened.page.evaluate<{
        scrollWidth: number
        wide: string[]
      }>(describeWidth)
      return scrollWidth > viewport.width ? [`${scrollWidth} px wide`, ...wide] : []
    }
    const check = async (): Promise<string[]> => [
      ...(await opened.page.getByRole('alert').allTextContents()),
      ...(await findWide()),
      ...(await seriousFindings(opened.page, { runOnly: phoneRules })),
    ]
    expect(await visitAll(dashboard, opened, check)).toEqual({})
    expect(opened.problems).toEqual([])
    await opened.page.context().close()
  })

  it('can be used with the keyboard alone', async () => {
    const { page, problems } = await openSignedIn(browser, dashboard, '/')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('textbox', { name: 'Search' }).fill('letters')
    await page.getByRole('button', { name: 'Search letters for “letters”' }).waitFor()
    await page.keyboard.press('Enter')
    const grid = page.getByRole('grid', { name: 'Letters' })
    await grid.waitFor()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('Shift+Slash')
    await page.getByRole('dialog').getByText('Next letter').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const current = (): Promise<string | null> => grid.getAttribute('aria-activedescendant')
    await page.keyboard.press('j')
    await expect.poll(current).toBe('letter-row-0')
    await page.keyboard.press('j')
    await expect.poll(current).toBe('letter-row-1')
    await page.keyboard.press('k')
    await expect.poll(current).toBe('letter-row-0')
    const retried = page.waitForResponse(/\/retry$/)
    await page.keyboard.press('r')
    expect((await retried).status()).toBe(200)
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/letters\/[0-9a-f-]{36}/)
    expect(problems).toEqual([])
    await page.context().close()
  })

  it('acknowledge an alert', async () => {
    const { page, problems } = await openSignedIn(browser, dashboard, '/alerts')
    await page.getByRole('button', { name: 'Acknowledge parked' }).click()
    await page.getByRole('textbox', { name: 'Note (optional)' }).fill('finance decides today')
    await page.getByRole('dialog').getByRole('button', { name: 'Acknowledge' }).click()
    await page.getByRole('table', { name: 'Raised alerts' }).getByText('mia').waitFor()
    // The breaker of a queue may have raised another one.
    const alerts = await dashboard.client.listAlerts()
    expect(alerts.find(({ name }) => name === 'parked')).toMatchObject({
      acknowledged: { by: 'mia', note: 'finance decides today' },
    })
    expect(problems).toEqual([])
    await page.context().close()
  })

  it('replay the dead records of a node of the pipeline', async () => {
    const { page, problems } = await openSignedIn(browser, dashboard, '/pipeline')
    await page.getByRole('button', { name: /^Replay .*parse/ }).click()
    await page.getByRole('button', { name: 'Count matching records' }).click()
    await page.getByRole('button', { name: 'Replay 14 records' }).click()
    await page.getByRole('status').getByText('Replayed', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Close' }).last().click()
    await expect
      .poll(() => page.getByRole('button', { name: /^Replay .*parse/ }).isDisabled())
      .toBe(true)
    expect(problems).toEqual([])
    await page.context().close()
  })
})

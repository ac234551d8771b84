import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { isDeep } from '../depth.ts'
import { openSqlite } from './a-dashboard.ts'
import { seriousFindings } from './axe.ts'
import { benchOn, type DashboardBench } from './dashboard-bench.ts'
import { dashboardStores } from './dashboard-stores.ts'
import { openSampleDashboard, waitUntilLoaded, type SampleDashboard } from './sample-pages.ts'
import { waitFor } from '../wait-for.ts'

const desktop = { width: 1280, height: 800 }
const phone = { width: 390, height: 844 }

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

/** The scripts that a page has loaded: their names and compressed sizes. */
const listScripts = `performance.getEntriesByType('resource')
  .filter(({ name }) => name.endsWith('.js'))
  .map(({ name, encodedBodySize }) => [new URL(name).pathname, encodedBodySize])`
type Script = [path: string, bytes: number]

const maxScriptBytes = 350 * 1024

/** Loaded when something of them is shown: charts, editors, and differences of versions. */
const lazyScripts = [
  { script: 'uplot-chart-', pages: ['overview', 'group'] },
  { script: 'code-mirror-', pages: ['letter'] },
]
const largestPages = ['overview', 'letters', 'letter', 'group', 'bulk-action']

/** What is wrong with a page, by rule. */
interface Findings {
  light: string[]
  dark: string[]
  phone: string[]
  width: string[]
  alerts: string[]
  scripts: Script[]
}

async function findWide(page: Page): Promise<string[]> {
  const { scrollWidth, wide } = await page.evaluate<{ scrollWidth: number; wide: string[] }>(
    describeWidth,
  )
  return scrollWidth > phone.width ? [`${scrollWidth} px wide`, ...wide] : []
}

/** Checks all rules on a page that is loaded once. */
async function inspect(page: Page): Promise<Findings> {
  const scripts = await page.evaluate<Script[]>(listScripts)
  const light = await seriousFindings(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.locator('html[data-mantine-color-scheme=dark]').waitFor()
  // The theme changes colours only, so that the other rules run once.
  const dark = await seriousFindings(page, { runOnly: ['color-contrast'] })
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(phone)
  // Charts are drawn again after the page has its new size.
  const fits = async (): Promise<void> => expect(await findWide(page)).toEqual([])
  await waitFor(fits).catch(() => {})
  return {
    light,
    dark,
    scripts,
    phone: await seriousFindings(page, { runOnly: phoneRules }),
    width: await findWide(page),
    alerts: await page.getByRole('alert').allTextContents(),
  }
}

async function inspectAll(
  bench: DashboardBench<SampleDashboard>,
): Promise<Record<string, Findings>> {
  const found: Record<string, Findings> = {}
  for (const [name, path] of bench.dashboard.pages)
    await bench.visit(path, async (page) => {
      await waitUntilLoaded(page)
      found[name] = await inspect(page)
      if (isDeep) {
        await page.reload()
        await waitUntilLoaded(page)
        found[name].width.push(...(await findWide(page)))
        found[name].alerts.push(...(await page.getByRole('alert').allTextContents()))
      }
      await page.setViewportSize(desktop)
    })
  return found
}

describe.each(dashboardStores)('the pages with data, on %s', (_, open) => {
  const bench = benchOn(() => openSampleDashboard(open === openSqlite ? undefined : open))

  describe('every page', () => {
    let found: Record<string, Findings>
    beforeAll(async () => {
      found = await inspectAll(bench)
    }, 240_000)
    const findings = (rule: Exclude<keyof Findings, 'scripts'>): Record<string, string[]> =>
      Object.fromEntries(
        Object.entries(found)
          .map(([name, byRule]) => [name, byRule[rule]] as const)
          .filter(([, list]) => list.length > 0),
      )

    it.each(['light', 'dark'] as const)('is accessible in the %s theme', (theme) => {
      expect(Object.keys(found)).toHaveLength(bench.dashboard.pages.length)
      expect(findings(theme)).toEqual({})
    })

    it('shows no problem, and fits a phone with its names and keys', () => {
      expect(findings('alerts')).toEqual({})
      expect(findings('width')).toEqual({})
      expect(findings('phone')).toEqual({})
    })

    it('has small scripts, and the editor and the charts only where they are shown', () => {
      for (const name of largestPages) {
        const { scripts } = found[name]!
        const paths = scripts.map(([path]) => path).join(' ')
        for (const { script, pages } of lazyScripts)
          if (!pages.includes(name)) expect(paths, name).not.toContain(script)
        const bytes = scripts
          .filter(([path]) => !lazyScripts.some(({ script }) => path.includes(script)))
          .reduce((sum, [, size]) => sum + size, 0)
        expect(bytes, name).toBeGreaterThan(0)
        expect(bytes, name).toBeLessThan(maxScriptBytes)
      }
    })
  })

  it('keep the theme that the reader has chosen', async () => {
    await bench.visit(
      '/letters',
      async (page) => {
        const scheme = (): Promise<string | null> =>
          page.locator('html').getAttribute('data-mantine-color-scheme')
        expect(await scheme()).toBe('light')
        await page.getByRole('button', { name: 'Theme' }).click()
        await page.getByRole('menuitem', { name: 'Dark' }).click()
        await expect.poll(scheme).toBe('dark')
        await page.reload()
        await page.getByRole('grid', { name: 'Letters' }).waitFor()
        expect(await scheme()).toBe('dark')
      },
      // The choice is kept in the browser of this person.
      { name: 'zoe' },
    )
  })

  it('can be used with the keyboard alone', async () => {
    await bench.visit('/', async (page) => {
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
    })
  })

  it('acknowledge an alert', async () => {
    await bench.visit('/alerts', async (page) => {
      await page.getByRole('button', { name: 'Acknowledge parked' }).click()
      await page.getByRole('textbox', { name: 'Note (optional)' }).fill('finance decides today')
      await page.getByRole('dialog').getByRole('button', { name: 'Acknowledge' }).click()
      await page.getByRole('table', { name: 'Raised alerts' }).getByText('mia').waitFor()
    })
    // The breaker of a queue may have raised another one.
    const alerts = await bench.client.listAlerts()
    expect(alerts.find(({ name }) => name === 'parked')).toMatchObject({
      acknowledged: { by: 'mia', note: 'finance decides today' },
    })
  })

  it('replay the dead records of a node of the pipeline', async () => {
    await bench.visit('/pipeline', async (page) => {
      await page.getByRole('button', { name: /^Replay .*parse/ }).click()
      await page.getByRole('button', { name: 'Count matching records' }).click()
      await page.getByRole('button', { name: 'Replay 14 records' }).click()
      await page.getByRole('status').getByText('Replayed', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'Close' }).last().click()
      await expect
        .poll(() => page.getByRole('button', { name: /^Replay .*parse/ }).isDisabled())
        .toBe(true)
    })
  })
})

import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launchBrowser, openSignedIn } from './browser.ts'
import { openSampleDashboard, waitUntilLoaded, type SampleDashboard } from './sample-pages.ts'

const maxBytes = 350 * 1024

let browser: Browser
let dashboard: SampleDashboard
beforeAll(async () => {
  browser = await launchBrowser()
  dashboard = await openSampleDashboard()
})
afterAll(async () => {
  await browser?.close()
  await dashboard?.close()
})

/** The scripts that a page has loaded: their names and compressed sizes. */
const listScripts = `performance.getEntriesByType('resource')
  .filter(({ name }) => name.endsWith('.js'))
  .map(({ name, encodedBodySize }) => [new URL(name).pathname, encodedBodySize])`

/** Loaded when something of them is shown: charts, editors, and differences of versions. */
const lazy = [
  { script: 'uplot-chart-', pages: ['overview', 'group'] },
  { script: 'code-mirror-', pages: ['letter'] },
]

const largest = ['overview', 'letters', 'letter', 'group', 'bulk-action']

describe('the scripts of a page', () => {
  it('are small, and have the editor and the charts only where they are shown', async () => {
    const { page } = await openSignedIn(browser, dashboard, '/')
    for (const [name, path] of dashboard.pages.filter(([one]) => largest.includes(one))) {
      await page.goto(path)
      await waitUntilLoaded(page)
      const scripts = await page.evaluate<[path: string, bytes: number][]>(listScripts)
      const paths = scripts.map(([script]) => script).join(' ')
      for (const { script, pages } of lazy)
        if (!pages.includes(name)) expect(paths, name).not.toContain(script)
      const bytes = scripts
        .filter(([file]) => !lazy.some(({ script }) => file.includes(script)))
        .reduce((sum, [, size]) => sum + size, 0)
      expect(bytes, name).toBeGreaterThan(0)
      expect(bytes, name).toBeLessThan(maxBytes)
    }
    await page.context().close()
  })
})

import { describe, expect, it } from 'vitest'
import { seriousFindings } from './axe.ts'
import { benchForTests } from './dashboard-bench.ts'
import { dashboardStores } from './dashboard-stores.ts'
import { emptyPages, waitUntilLoaded } from './sample-pages.ts'

describe.each(dashboardStores)('a new installation on %s', (_, open) => {
  const viewport = { width: 390, height: 844 }
  const bench = benchForTests(open, {}, {}, { viewport })

  // The tests after this one store letters.
  it('has pages that fit a phone without scrolling to the side, and are accessible', async () => {
    await bench.visit('/', async (page) => {
      for (const [name, path] of emptyPages) {
        if (path !== '/') await page.goto(path)
        await waitUntilLoaded(page)
        const width = await page.evaluate<number>('document.documentElement.scrollWidth')
        expect(width, name).toBe(viewport.width)
        expect(await seriousFindings(page), name).toEqual([])
      }
    })
  })

  it('shows how to send the first letter, and shows the letter when it arrives', async () => {
    await bench.visit('/', async (page) => {
      await page.getByText('Waiting for the first letter').waitFor()
      await bench.capture({
        queue: 'charge-card',
        json: { order: 42 },
        error: { message: 'socket hang up', code: 'ECONNRESET' },
      })
      await page.getByRole('link', { name: 'charge-card' }).waitFor()
      await page
        .getByRole('link', { name: /socket hang up/ })
        .first()
        .waitFor()
    })
    expect((await bench.client.listLetters({})).items).toHaveLength(1)
  })
})

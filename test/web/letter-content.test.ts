import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { benchForTests, chooseItem, readClipboard, withClipboard } from './dashboard-bench.ts'
import { dashboardStores } from './dashboard-stores.ts'

const stack = [
  'TypeError: no lines',
  '    at chargeCard (/app/src/charge-card.ts:41:11)',
  '    at run (/app/node_modules/queue/run.js:7:3)',
  '    at next (/app/node_modules/queue/run.js:9:3)',
].join('\n')

describe.each(dashboardStores)('the page of a letter, on %s', (_, open) => {
  const queues = { guarded: { redact: { paths: ['payload.card'] } } }
  const bench = benchForTests(open, { queues }, {}, withClipboard)

  describe('its payload', () => {
    const payload = { order: 1, note: 'straße', lines: Array.from({ length: 120 }, (_, at) => at) }

    it('is shown as tree, text and bytes, as the address says', async () => {
      const { id } = await bench.capture({ queue: 'views', json: payload })
      await bench.visit(`/letters/${id}`, async (page) => {
        const lines = page.getByRole('button', { name: /^lines/ })
        expect(await lines.getAttribute('aria-expanded')).toBe('false')
        await lines.click()
        await page.getByRole('button', { name: '20 more' }).click()
        await page.getByTitle('$.lines[119]').waitFor()
        await showAs(page, 'Text')
        await page.getByText('"note": "straße"').waitFor()
        await showAs(page, 'Hex')
        await page.getByText('7b 22 6f 72 64 65 72 22').waitFor()
        await page.waitForURL(/view=hex/)
        await page.reload()
        await page.getByText('7b 22 6f 72 64 65 72 22').waitFor()
      })
    })

    it('is searched by key and value', async () => {
      const { id } = await bench.capture({ queue: 'views', json: payload })
      await bench.visit(`/letters/${id}`, async (page) => {
        await page.getByRole('textbox', { name: 'Search the payload' }).fill('straß')
        await page.getByText('1 match', { exact: true }).waitFor()
        await page.getByText('$.note').waitFor()
        expect(await page.getByText('$.order').count()).toBe(0)
      })
    })

    it('is downloaded and copied as a whole', async () => {
      const { id } = await bench.capture({ queue: 'views', json: payload })
      await bench.visit(`/letters/${id}`, async (page) => {
        const started = page.waitForEvent('download')
        await page.getByRole('button', { name: 'Download' }).click()
        const download = await started
        expect(download.suggestedFilename()).toBe(`letter-${id}.json`)
        expect(JSON.parse(await readFile(await download.path(), 'utf8'))).toEqual(payload)
        await page.getByRole('button', { name: 'Copy', exact: true }).click()
        await expect.poll(() => readClipboard(page)).toBe(JSON.stringify(payload, null, 2))
      })
    })

    it('that is not text has bytes only, and cannot be edited as text', async () => {
      const base64 = Buffer.from([0, 255, 1]).toString('base64')
      const contentType = 'application/octet-stream'
      const { id } = await bench.client.capture({
        queue: 'bytes',
        base64,
        contentType,
        error: { message: 'unknown format' },
      })
      await bench.visit(`/letters/${id}`, async (page) => {
        await page.getByText('00 ff 01').waitFor()
        expect(await page.getByRole('radio', { name: 'Text' }).count()).toBe(0)
        await page.getByRole('button', { name: 'Edit…' }).click()
        await page.getByText('This payload cannot be edited here').waitFor()
      })
    })

    it('is revealed on request, which the audit log records', async () => {
      const { id } = await bench.capture({ queue: 'guarded', json: { card: '4242', order: 1 } })
      await bench.visit(`/letters/${id}`, async (page) => {
        await page.getByRole('button', { name: 'Edit…' }).click()
        await page.getByText('Parts of this payload are hidden').waitFor()
        await page.keyboard.press('Escape')
        await page.getByRole('dialog').waitFor({ state: 'detached' })
        expect(await page.getByText('4242').count()).toBe(0)
        await page.getByRole('button', { name: 'Reveal (audited)' }).click()
        await page.getByText('"4242"').waitFor()
      })
      const { items } = await bench.client.listAudit({ what: id, actor: 'mia' })
      expect(items.map(({ action }) => action)).toContain('reveal')
    })
  })

  describe('a letter', () => {
    it('unfolds the frames of libraries, and copies the stack', async () => {
      const error = { name: 'TypeError', message: 'no lines', stack }
      const { id } = await bench.capture({ queue: 'stack', error })
      await bench.visit(`/letters/${id}`, async (page) => {
        await page.getByText('at chargeCard').waitFor()
        expect(await page.getByText('at run').count()).toBe(0)
        await page.getByRole('button', { name: '2 library frames' }).click()
        await page.getByText('at run').waitFor()
        await page.getByRole('button', { name: 'Copy stack' }).click()
        await expect.poll(() => readClipboard(page)).toBe(stack)
      })
    })

    it('shows the whole of a long message', async () => {
      const message = `${'x'.repeat(3000)} the end`
      const { id } = await bench.capture({ queue: 'long', error: { message } })
      await bench.visit(`/letters/${id}`, async (page) => {
        await page.getByRole('button', { name: 'Show all 3,008 characters' }).click()
        await page.getByText(/the end$/).waitFor()
        expect(await page.getByRole('button', { name: /^Show all/ }).count()).toBe(0)
      })
    })

    it('is copied as a test, as a command that captures it again, and as its id', async () => {
      const { id } = await bench.capture({ queue: 'copies', json: { order: "it's 42" } })
      await bench.visit(`/letters/${id}`, async (page) => {
        await chooseItem(page, 'More actions', 'Copy as test')
        await expect.poll(() => readClipboard(page)).toContain(`payload of letter ${id}`)
        await chooseItem(page, 'More actions', 'Copy as curl')
        await expect
          .poll(() => readClipboard(page))
          .toContain(`curl '${bench.dashboard.url}/api/capture'`)
        await page.getByRole('button', { name: `Copy ${id}` }).click()
        await expect.poll(() => readClipboard(page)).toBe(id)
      })
    })

    it('leads to the letters beside it in the list, also by keys', async () => {
      const messages = ['oldest', 'middle', 'newest']
      await bench.captureAll(messages.map((message) => ({ queue: 'beside', error: { message } })))
      await bench.visit('/letters?queue=beside', async (page) => {
        const isShown = (message: string): Promise<void> =>
          page.getByRole('heading', { level: 1, name: message }).waitFor()
        const previous = page.getByRole('button', { name: 'Previous' })
        const next = page.getByRole('button', { name: 'Next' })
        await page.getByRole('link', { name: 'Error: middle' }).click()
        await isShown('middle')
        await previous.click()
        await isShown('newest')
        await expect.poll(() => previous.isDisabled()).toBe(true)
        await page.keyboard.press('j')
        await isShown('middle')
        await next.click()
        await isShown('oldest')
        await expect.poll(() => next.isDisabled()).toBe(true)
        await page.keyboard.press('k')
        await isShown('middle')
      })
    })

    it('links its group, its queue, and letters with the same cause', async () => {
      const other = await bench.capture({ queue: 'cause' })
      const shown = await bench.capture({ queue: 'cause' })
      await bench.visit(`/letters/${shown.id}`, async (page) => {
        const table = page.getByRole('table', { name: 'Letters with the same cause' })
        await table.getByTitle(other.id).click()
        await page.waitForURL(new RegExp(other.id))
        await page.getByRole('link', { name: '2 letters with this cause' }).click()
        await page.waitForURL(/\/groups\//)
        await page.goBack()
        await page.getByRole('link', { name: 'All of them' }).click()
        await page.waitForURL(/\/letters\?group=/)
        await page.getByRole('row').nth(2).waitFor()
        await page.goBack()
        await page.getByRole('main').getByRole('link', { name: 'cause', exact: true }).click()
        await page.getByRole('heading', { level: 1, name: 'cause' }).waitFor()
        expect(new URL(page.url()).pathname).toBe('/queues/cause')
      })
    })
  })
})

/** The radio of a segmented control is hidden below its label. */
async function showAs(page: Page, view: string): Promise<void> {
  await page.getByRole('radiogroup', { name: 'Show the payload as' }).getByText(view).click()
}

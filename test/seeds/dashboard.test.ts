import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDashboard, type TestDashboard } from '../web/a-dashboard.ts'
import { launchBrowser, openPage, signIn } from '../web/browser.ts'
import { clause, row } from './rows.ts'

let browser: Browser
let dashboard: TestDashboard
beforeAll(async () => {
  browser = await launchBrowser()
  dashboard = await openDashboard()
})
afterAll(async () => {
  await browser?.close()
  await dashboard?.close()
})

async function open(path: string): Promise<Page> {
  const { page } = await openPage(browser, dashboard.url)
  await signIn(page, await dashboard.token({ role: 'operator' }), path)
  return page
}

describe(row('O9'), () => {
  it(clause('O9', 'phases 2 and 3 of its plan: dashboard'), async () => {
    const { id } = await dashboard.dlq.enqueue(
      { type: 'github-call', payload: { issue: 7 } },
      new Error('API rate limit exceeded'),
    )
    const page = await open(`/letters/${id}`)
    await page.getByText('API rate limit exceeded').first().waitFor()
    dashboard.dlq.handle('github-call', () => 'done')
    await page.getByRole('button', { name: 'Retry now' }).click()
    await expect.poll(async () => (await dashboard.client.getLetter({ id })).state).toBe('resolved')
    await page.context().close()
  })
})

describe(row('W12'), () => {
  it(clause('W12', 'web UI'), async () => {
    const { id } = await dashboard.dlq.enqueue(
      { type: 'deploy', payload: { target: 'eu-1' } },
      new Error('the target refused the release'),
    )
    const page = await open('/')
    await page.getByRole('link', { name: /the target refused the release/ }).click()
    await page.getByRole('heading', { name: /the target refused the release/ }).waitFor()
    expect(page.url()).toContain('/groups/')
    expect((await dashboard.client.getLetter({ id })).queue).toBe('deploy')
    await page.context().close()
  })
})

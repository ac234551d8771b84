import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { openSignedIn } from './browser.ts'
import { benchForTests } from './dashboard-bench.ts'
import { allStores, dashboardStores } from './dashboard-stores.ts'

describe.each(allStores)('the dashboard on %s', (name, open) => {
  // Here, dialogs and menus move as they do for most readers.
  const motion = { reducedMotion: 'no-preference' } as const
  const bench = benchForTests(open, { approval: { above: 20 } }, {}, motion)
  /** Whether the mail server of the handler accepts mails. */
  let isMailUp = false
  beforeAll(() => {
    bench.dashboard.dlq.handle('charge-card', ({ input }) => {
      if ((input as { currency: string }).currency !== 'EUR') throw new Error('unknown currency')
    })
    bench.dashboard.dlq.handle('send-mail', () => {
      if (!isMailUp) throw new Error('the mail server is down')
    })
  })

  const captureMany = (count: number, input: Parameters<typeof bench.capture>[0]) =>
    Promise.all(Array.from({ length: count }, () => bench.capture(input)))

  it('announces a letter, which can then be opened, edited, retried and resolved', async () => {
    await bench.capture({ queue: 'other' })
    await bench.visit('/letters', async (page) => {
      await page.getByRole('link', { name: 'Error: it failed' }).waitFor()
      const error = { message: 'unknown currency', name: 'CurrencyError' }
      await bench.capture({ queue: 'charge-card', json: { currency: 'EURO' }, error })
      await page.getByRole('button', { name: '1 new' }).click()
      await page.getByRole('link', { name: 'CurrencyError: unknown currency' }).click()
      await page.getByRole('button', { name: 'Edit…' }).click()
      const editor = page.getByRole('dialog').getByRole('textbox', { name: 'Payload' })
      await editor.press('Control+a')
      await page.keyboard.insertText('{ "currency": "EUR" }')
      await page.getByRole('button', { name: 'Review the changes' }).click()
      await page.getByRole('textbox', { name: 'Reason' }).fill('EURO is no currency')
      await page.getByRole('button', { name: 'Save as version 2' }).click()
      await page.getByRole('heading', { name: 'Versions' }).waitFor()
      await page.getByRole('button', { name: 'Retry now' }).click()
      await main(page).getByText('resolved', { exact: true }).first().waitFor()
      const [letter] = (await bench.client.listLetters({ queue: 'charge-card' })).items
      expect(letter).toMatchObject({ state: 'resolved', payload: { version: 2 } })
    })
  })

  it('stops a retry of a group at its first letters, and continues after the fix', async () => {
    isMailUp = false
    const error = { message: 'the mail server is down', code: 'MAIL_DOWN' }
    await captureMany(12, { queue: 'send-mail', error })
    await bench.visit('/groups', async (page) => {
      await page.getByRole('link', { name: /the mail server is down/ }).click()
      await page.getByRole('button', { name: 'Retry 12 letters' }).click()
      const drawer = page.getByRole('dialog', { name: 'Retry letters' })
      await drawer.getByRole('button', { name: 'Next: limits' }).click()
      await drawer.getByRole('switch', { name: /Start with few letters/ }).click()
      await drawer.getByRole('textbox', { name: 'First step (letters)' }).fill('2')
      await drawer.getByRole('button', { name: 'Continue' }).click()
      await drawer.getByRole('button', { name: 'Retry 12 letters' }).click()
      await drawer.getByText('Stopped: all 2 letters of the step of 2 failed').waitFor()
      isMailUp = true
      await drawer.getByRole('button', { name: 'Resume' }).click()
      await drawer.getByText('12 of 12 letters').waitFor()
      await drawer.getByRole('link', { name: 'Open the page of this action' }).click()
      await main(page).getByText('finished', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'failed 2' }).click()
      await expect
        .poll(() => page.getByRole('list', { name: 'Results' }).textContent())
        .toContain('the mail server is down')
      await page.getByRole('button', { name: 'succeeded 10' }).waitFor()
    })
  })

  it('runs a large plan only after a second person has approved it', async () => {
    await captureMany(21, { queue: 'archive-order', maxRetries: 3 })
    await bench.visit('/letters?queue=archive-order', async (page) => {
      await page.getByRole('checkbox', { name: 'Select the loaded letters' }).click()
      await page.getByRole('button', { name: 'Select all 21 matching' }).click()
      await page.getByRole('button', { name: 'Park', exact: true }).click()
      const drawer = page.getByRole('dialog', { name: 'Park letters' })
      await drawer.getByRole('button', { name: 'Next: limits' }).click()
      await drawer.getByRole('button', { name: 'Continue' }).click()
      const run = drawer.getByRole('button', { name: 'Park 21 letters', exact: true })
      await drawer.getByText('Another person has to approve this plan').waitFor()
      expect(await run.isDisabled()).toBe(true)
      const plan = await drawer
        .getByRole('link', { name: 'Open the page of this action' })
        .getAttribute('href')
      const bob = await openSignedIn(bench.browser, bench.dashboard, plan!, {
        as: { name: 'bob', role: 'operator' },
      })
      await bob.page.getByRole('button', { name: 'Approve: Park 21 letters' }).click()
      await bob.page.getByText('Approved by bob').first().waitFor()
      await expect.poll(() => run.isEnabled()).toBe(true)
      await run.click()
      await bob.page.getByText('21 of 21 letters').waitFor()
      expect(bob.problems).toEqual([])
      await bob.page.context().close()
    })
  })

  // The other tests run on other stores in `npm run deep`.
  if (!dashboardStores.some(([full]) => full === name)) return

  it('saves a list of letters as a view, and shares it', async () => {
    await bench.capture({ queue: 'other' })
    await bench.visit('/letters?queue=other', async (page) => {
      await page.getByRole('button', { name: 'Saved views' }).click()
      await page.getByRole('menuitem', { name: 'Save this list as a view' }).click()
      await page.getByRole('textbox', { name: 'Name' }).fill('Other letters')
      await page.getByRole('switch', { name: /Share with everybody/ }).click()
      await page.getByRole('button', { name: 'Save', exact: true }).click()
      await page.getByRole('button', { name: 'Other letters' }).waitFor()
      await page.reload()
      await page.getByRole('button', { name: 'Other letters' }).waitFor()
    })
    const bob = { name: 'bob', role: 'viewer' } as const
    await bench.visit(
      '/letters',
      async (page) => {
        await page.getByRole('button', { name: 'Saved views' }).click()
        await page.getByRole('menuitem', { name: 'Other letters' }).click()
        await expect.poll(() => new URL(page.url()).search).toContain('queue=other')
      },
      bob,
    )
  })

  it('pauses and resumes a queue', async () => {
    await bench.capture({ queue: 'slow' })
    await bench.visit('/queues/slow', async (page) => {
      await page.getByRole('button', { name: 'Pause slow' }).click()
      await page.getByRole('textbox', { name: 'Reason' }).fill('the warehouse is closed')
      await page.getByRole('button', { name: 'Pause the queue' }).click()
      await page.getByRole('button', { name: 'Resume slow' }).waitFor()
      expect(await bench.client.listPausedQueues()).toMatchObject([
        { queue: 'slow', reason: 'the warehouse is closed', by: 'mia' },
      ])
      await page.getByRole('button', { name: 'Resume slow' }).click()
      await page.getByRole('button', { name: 'Pause slow' }).waitFor()
      expect(await bench.client.listPausedQueues()).toEqual([])
    })
  })

  it('says that the connection is lost, and continues when the server is back', async () => {
    await bench.visit('/letters', async (page, problems) => {
      await page.getByRole('grid', { name: 'Letters' }).waitFor()
      const banner = page.getByText('The connection to the server is lost')
      await bench.dashboard.stopServer()
      try {
        await banner.waitFor()
      } finally {
        await bench.dashboard.startServer()
      }
      await banner.waitFor({ state: 'detached' })
      await bench.capture({ queue: 'after-restart', error: { message: 'late' } })
      await page.getByRole('button', { name: '1 new' }).click()
      await page.getByRole('link', { name: 'Error: late' }).waitFor()
      const others = problems.splice(0).filter((problem) => !problem.includes('net::ERR'))
      expect(others).toEqual([])
    })
  })

  it('creates, rotates and revokes a token, and finds the audit log unchanged', async () => {
    await bench.visit('/settings/tokens', async (page) => {
      const callAs = async (token: string): Promise<number> =>
        (
          await fetch(`${bench.dashboard.url}/api/letters`, {
            headers: { authorization: `Bearer ${token}` },
          })
        ).status
      const readSecret = async (): Promise<string> => {
        const dialog = page.getByRole('dialog', { name: 'Token of ci' })
        const secret = await dialog.getByText(/^rdr_/).textContent()
        await page.keyboard.press('Escape')
        await dialog.waitFor({ state: 'detached' })
        return secret!
      }
      await page.getByRole('button', { name: 'Create a token' }).click()
      await page.getByRole('textbox', { name: 'Name' }).fill('ci')
      await page.getByRole('button', { name: 'Create the token' }).click()
      const first = await readSecret()
      expect(await callAs(first)).toBe(200)
      await page.getByRole('button', { name: 'Rotate ci' }).click()
      await page.getByRole('button', { name: 'Rotate the token' }).click()
      const second = await readSecret()
      expect([await callAs(first), await callAs(second)]).toEqual([401, 200])
      await page.getByRole('button', { name: 'Revoke ci' }).click()
      await page.getByRole('button', { name: 'Revoke the token' }).click()
      await page.getByRole('button', { name: 'Revoke ci' }).waitFor({ state: 'detached' })
      expect(await callAs(second)).toBe(401)
      await page.getByRole('link', { name: 'Audit log' }).click()
      await page.getByRole('button', { name: 'Check the whole log' }).click()
      await page.getByText(/entries: none was changed or removed/).waitFor()
    })
  })
})

function main(page: Page) {
  return page.getByRole('main')
}

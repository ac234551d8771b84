import { describe, expect, it } from 'vitest'
import type { Notification, Target } from '../../src/observers/notify/target.ts'
import { benchForTests } from './dashboard-bench.ts'
import { dashboardStores } from './dashboard-stores.ts'

describe.each(dashboardStores)('the pages of settings, queues and alerts, on %s', (_, open) => {
  const sent: Notification[] = []
  const target: Target = {
    kind: 'webhook',
    send: (notification) => {
      sent.push(notification)
      return Promise.resolve({ sent: true, answer: 'answered 200' })
    },
  }
  const notify = { team: target }
  const bench = benchForTests(
    open,
    { notify },
    {
      effectiveSettings: [
        { key: 'store', value: 'sqlite:redrive.db', from: '--store' },
        { key: 'maxRetries', value: 5, from: 'redrive.yaml' },
      ],
    },
  )

  it('find a value and where it comes from', async () => {
    await bench.visit('/settings', async (page) => {
      const table = page.getByRole('table', { name: 'Settings' })
      await table.getByText('sqlite:redrive.db').waitFor()
      await page.getByRole('textbox', { name: 'Find a setting' }).fill('maxre')
      await table.getByText('sqlite:redrive.db').waitFor({ state: 'detached' })
      await table.getByText('redrive.yaml').waitFor()
      expect(await table.getByRole('row').count()).toBe(2)
    })
  })

  it('create a token with a role, queues, tenants and an end', async () => {
    await bench.visit('/settings/tokens', async (page) => {
      await page.getByRole('button', { name: 'Create a token' }).click()
      const dialog = page.getByRole('dialog', { name: 'Create a token' })
      await dialog.getByRole('textbox', { name: 'Name' }).fill('support')
      await dialog.getByRole('combobox', { name: 'Role' }).selectOption('operator')
      for (const [field, value] of [
        ['Queues', 'charge-card'],
        ['Tenants', 'acme'],
      ] as const) {
        await dialog.getByRole('combobox', { name: field }).fill(value)
        await dialog.getByRole('combobox', { name: field }).press('Enter')
      }
      await dialog.getByRole('textbox', { name: 'Expires after days' }).fill('30')
      await dialog.getByRole('button', { name: 'Create the token' }).click()
      await page.getByRole('dialog', { name: 'Token of support' }).getByText(/^rdr_/).waitFor()
    })
    const token = (await bench.client.listTokens()).find(({ name }) => name === 'support')
    expect(token).toMatchObject({ role: 'operator', queues: ['charge-card'], tenants: ['acme'] })
    expect(token).toHaveProperty('expiresAt')
  })

  it('filter the audit log by actor and by what was changed', async () => {
    const { id } = await bench.capture({ queue: 'audited' })
    await bench.client.noteLetter({ id, text: 'audited' })
    await bench.visit('/settings/audit', async (page) => {
      const table = page.getByRole('table', { name: 'Entries of the audit log' })
      await table.getByText('sign-in').first().waitFor()
      await page.getByRole('textbox', { name: 'Id of what was changed' }).fill(id)
      await table.getByText('sign-in').first().waitFor({ state: 'detached' })
      await table.getByText(id).first().waitFor()
      await expect.poll(() => new URL(page.url()).search).toContain(id)
      await page.getByRole('textbox', { name: 'Actor' }).fill('nobody')
      await page.getByText('No entry matches').waitFor()
    })
  })

  it('find a queue by a part of its name', async () => {
    await bench.captureAll([{ queue: 'find-orders' }, { queue: 'find-mails' }])
    await bench.visit('/queues', async (page) => {
      const main = page.getByRole('main')
      await main.getByRole('link', { name: 'find-mails' }).waitFor()
      await page.getByPlaceholder('Find a queue').fill('orders')
      await main.getByRole('link', { name: 'find-mails' }).waitFor({ state: 'detached' })
      await main.getByRole('link', { name: 'find-orders' }).waitFor()
      expect(new URL(page.url()).search).toBe('?name=orders')
    })
  })

  it('send a test to a target', async () => {
    await bench.visit('/alerts', async (page) => {
      await page.getByRole('textbox', { name: 'Name of a target' }).fill('team')
      await page.getByRole('button', { name: 'Send a test' }).click()
      await page.getByText('The target accepted the test: answered 200').waitFor()
      await page.getByRole('textbox', { name: 'Name of a target' }).fill('nobody')
      await page.getByRole('button', { name: 'Send a test' }).click()
      await page
        .getByText(/nobody/)
        .first()
        .waitFor()
    })
    expect(sent).toMatchObject([{ kind: 'test' }])
  })
})

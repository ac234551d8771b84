import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { benchForTests, chooseItem } from './dashboard-bench.ts'
import { dashboardStores } from './dashboard-stores.ts'

describe.each(dashboardStores)('an action on a group, on %s', (_, open) => {
  const bench = benchForTests(open)
  const groupOf = (fingerprint: string) => bench.client.getGroup({ fingerprint })
  /** Stores letters with one cause, and returns the fingerprint of their group. */
  const createGroup = async (name: string, count = 1): Promise<string> => {
    const input = { queue: name, error: { name: 'GroupError', message: `${name} failed` } }
    await bench.captureAll(Array.from({ length: count }, () => input))
    return (await bench.client.listGroups({ queue: name })).items[0]!.fingerprint
  }
  const visitGroup = (fingerprint: string, steps: (page: Page) => Promise<void>) =>
    bench.visit(`/groups/${encodeURIComponent(fingerprint)}`, steps)
  const hasStatus = (page: Page, status: string): Promise<void> =>
    page.getByRole('main').getByText(status, { exact: true }).first().waitFor()

  it('resolves a group with the version of the fix, and reopens it', async () => {
    const fingerprint = await createGroup('resolved-group')
    await visitGroup(fingerprint, async (page) => {
      await page.getByRole('button', { name: 'Resolve…' }).click()
      const dialog = page.getByRole('dialog', { name: 'Resolve this group' })
      await dialog.getByRole('textbox', { name: 'Version with the fix' }).fill('2.4.1')
      await dialog.getByRole('button', { name: 'Resolve' }).click()
      await page.getByRole('button', { name: 'Reopen' }).waitFor()
      expect(await groupOf(fingerprint)).toMatchObject({
        status: 'resolved',
        resolved: { by: 'mia', inVersion: '2.4.1' },
      })
      await page.getByRole('button', { name: 'Reopen' }).click()
      await page.getByRole('button', { name: 'Resolve…' }).waitFor()
    })
    expect(await groupOf(fingerprint)).toMatchObject({ status: 'open' })
  })

  it('ignores a group until a limit is passed', async () => {
    const fingerprint = await createGroup('ignored-group')
    await visitGroup(fingerprint, async (page) => {
      await chooseItem(page, 'More actions', 'Ignore')
      const dialog = page.getByRole('dialog', { name: 'Ignore this group' })
      await dialog.getByRole('combobox', { name: 'Time' }).click()
      await page.getByRole('option', { name: '7 days', exact: true }).click()
      await dialog.getByRole('textbox', { name: 'Further failures' }).fill('100')
      await dialog.getByRole('button', { name: 'Ignore' }).click()
      await hasStatus(page, 'ignored')
      await page.getByText(/until 100 further failures/).waitFor()
    })
    const { status, ignored } = await groupOf(fingerprint)
    expect(status).toBe('ignored')
    expect(ignored).toMatchObject({ by: 'mia', count: 100, until: expect.any(String) })
  })

  it('assigns a group to the reader, to somebody else, and to nobody', async () => {
    const fingerprint = await createGroup('assigned-group')
    await visitGroup(fingerprint, async (page) => {
      await chooseItem(page, 'More actions', 'Assign to me')
      await page.getByText('assigned to mia').waitFor()
      expect(await groupOf(fingerprint)).toMatchObject({ assignee: 'mia' })
      await chooseItem(page, 'More actions', 'Assign…')
      const dialog = page.getByRole('dialog', { name: 'Assign this group' })
      await dialog.getByRole('textbox', { name: 'Name' }).fill('bob')
      await dialog.getByRole('button', { name: 'Assign' }).click()
      await page.getByText('assigned to bob').waitFor()
      expect(await groupOf(fingerprint)).toMatchObject({ assignee: 'bob' })
      await chooseItem(page, 'More actions', 'Remove the assignee')
      await page.getByText('not assigned').waitFor()
    })
    expect(await groupOf(fingerprint)).not.toHaveProperty('assignee')
  })

  it('notes what somebody has found out, and lists it in the history', async () => {
    const fingerprint = await createGroup('noted-group')
    await visitGroup(fingerprint, async (page) => {
      await page.getByRole('textbox', { name: 'New note' }).fill('Since the deploy of 2.4.0.')
      await page.getByRole('button', { name: 'Add note' }).click()
      await page.getByText('Note added').waitFor()
    })
    expect((await groupOf(fingerprint)).notes).toMatchObject([
      { by: 'mia', text: 'Since the deploy of 2.4.0.' },
    ])
  })

  it('merges groups, and splits them again', async () => {
    const fingerprint = await createGroup('whole-group')
    const other = await createGroup('part-of-group')
    await visitGroup(fingerprint, async (page) => {
      await chooseItem(page, 'More actions', 'Merge')
      const dialog = page.getByRole('dialog', { name: 'Merge groups into this one' })
      await dialog.getByRole('combobox', { name: 'Groups' }).fill('part-of-group')
      await page.getByRole('option', { name: /part-of-group/ }).click()
      await dialog.getByRole('button', { name: 'Merge 1 group' }).click()
      await page.getByRole('heading', { name: 'Merged groups' }).waitFor()
      expect(await groupOf(fingerprint)).toMatchObject({ count: 2, merged: [other] })
      await page.getByRole('button', { name: `Split ${other}` }).click()
      await page.getByRole('heading', { name: 'Merged groups' }).waitFor({ state: 'detached' })
    })
    expect(await groupOf(fingerprint)).toMatchObject({ count: 1 })
    expect(await groupOf(other)).toMatchObject({ count: 1 })
  })

  it('acts on all letters of a group after a plan', async () => {
    const fingerprint = await createGroup('acted-group', 3)
    await visitGroup(fingerprint, async (page) => {
      await chooseItem(page, 'All letters', 'Archive 3 letters')
      const drawer = page.getByRole('dialog', { name: 'Archive letters' })
      await drawer.getByRole('button', { name: 'Next: limits' }).click()
      await drawer.getByRole('button', { name: 'Continue' }).click()
      await drawer.getByRole('button', { name: 'Archive 3 letters' }).click()
      await drawer.getByText('3 of 3 letters').waitFor()
      await page.keyboard.press('Escape')
      await page.getByText('All letters of this group are archived or removed.').waitFor()
    })
    const archived = await bench.client.listLetters({ group: fingerprint, state: 'archived' })
    expect(archived.items).toHaveLength(3)
  })

  it('finds groups by status and queue, in the order that is asked for', async () => {
    const resolved = await createGroup('listed-resolved')
    await createGroup('listed-open', 2)
    await bench.client.resolveGroup({ fingerprint: resolved })
    await bench.visit('/groups', async (page) => {
      const choose = async (field: string, option: string): Promise<void> => {
        await page.getByRole('combobox', { name: field, exact: true }).click()
        await page.getByRole('option', { name: option, exact: true }).click()
        await page.keyboard.press('Escape')
      }
      const causes = (): Promise<string[]> =>
        page.getByRole('table', { name: 'Groups' }).getByRole('link').allTextContents()
      const [first, second] = ['listed-resolved', 'listed-open'].map(
        (name) => `GroupError: ${name} failed`,
      ) as [string, string]
      await choose('Queue', 'listed-resolved')
      await expect.poll(causes).toEqual([first])
      await choose('Queue', 'listed-open')
      await expect.poll(causes).toEqual([second, first])
      await choose('Order', 'Growing fastest first')
      await page.waitForURL(/sort=growth/)
      await choose('Status', 'resolved')
      await expect.poll(causes).toEqual([first])
      await choose('Count letters in the states', 'retrying')
      await page.getByText('No group matches these filters').waitFor()
      await page.getByRole('button', { name: 'Clear the filters' }).click()
      await page.waitForURL((url) => url.search === '')
      await expect.poll(causes).toContain(second)
    })
  })
})

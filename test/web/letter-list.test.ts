import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { InputOf } from '../../src/api/endpoints.ts'
import { benchForTests, chooseItem, type DashboardBench } from './dashboard-bench.ts'
import { dashboardStores } from './dashboard-stores.ts'

type Filter = InputOf<'listLetters'>

/** The failures in the list, in its order. */
const failuresIn = (page: Page): Promise<string[]> =>
  page
    .getByRole('grid', { name: 'Letters' })
    .getByRole('link', { name: /^Error/ })
    .allTextContents()
const expectFailures = (page: Page, failures: string[]): Promise<void> =>
  expect.poll(() => failuresIn(page)).toEqual(failures.map((one) => `Error: ${one}`))

/** Chooses a field in the menu of filters. Its values are in the element that is returned. */
async function addFilter(page: Page, field: string) {
  await page.getByRole('button', { name: 'Add filter' }).click()
  const popover = page.getByRole('dialog', { name: 'Add filter' })
  await popover.getByRole('button', { name: field, exact: true }).click()
  return popover
}

async function removeChip(page: Page, condition: string): Promise<void> {
  await page.getByRole('button', { name: `Remove the filter ${condition}` }).click()
}

describe.each(dashboardStores)('the list of letters, on %s', (_, open) => {
  const bench = benchForTests(open)
  // The first tests filter all letters of the store.
  describe('its filter', () => {
    testFilter(bench)
  })
  describe('its look', () => {
    testLook(bench)
  })
})

function testFilter(bench: DashboardBench): void {
  /** Two letters that differ in everything that a filter asks for. */
  let prepared: Promise<unknown> | undefined
  const prepare = () =>
    (prepared ??= bench.captureAll([
      { queue: 'plain', error: { message: 'plain' } },
      {
        queue: 'special',
        error: { message: 'special', code: 'ECONNRESET' },
        maxRetries: 3,
        priority: 'high',
        tags: ['vip'],
        tenant: 'acme',
        lane: 'order-7',
        metadata: { region: 'eu', size: 12 },
      },
    ]))

  it.each([
    ['Queue', 'special', 'queue: special', { queue: 'special' }],
    ['State', 'pending', 'state: pending', { state: 'pending' }],
    ['Group', 'Error: special', 'group: ', { text: 'special' }],
    ['Category', 'network', 'category: network', { category: 'network' }],
    ['Priority', 'high', 'priority: high', { priority: 'high' }],
  ] as [string, string, string, Filter][])(
    'limits it by a ticked %s, and a chip removes that',
    async (field, value, chip, filter) => {
      await prepare()
      await bench.visit('/letters', async (page) => {
        await expectFailures(page, ['special', 'plain'])
        const popover = await addFilter(page, field)
        await popover.getByRole('checkbox', { name: value }).check()
        await expectFailures(page, ['special'])
        await page.keyboard.press('Escape')
        await removeChip(page, chip)
        await expectFailures(page, ['special', 'plain'])
      })
      const { items } = await bench.client.listLetters(filter)
      expect(items.map(({ queue }) => queue)).toEqual(['special'])
    },
  )

  it('limits it by the reason why a letter is parked', async () => {
    await prepare()
    const { reason } = (await bench.client.listLetters({ queue: 'plain' })).items[0]!
    const words = reason!.replaceAll('-', ' ')
    await bench.visit('/letters', async (page) => {
      const popover = await addFilter(page, 'Reason')
      await popover.getByRole('textbox', { name: 'Find a value of Reason' }).fill(words)
      await popover.getByRole('checkbox', { name: words, exact: true }).check()
      await expectFailures(page, ['plain'])
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Clear filters' }).click()
      await expectFailures(page, ['special', 'plain'])
    })
  })

  it.each([
    ['Tag', 'vip'],
    ['Tenant', 'acme'],
    ['Lane', 'order-7'],
  ])('limits it by a %s that is chosen', async (field, value) => {
    await prepare()
    await bench.visit('/letters', async (page) => {
      await expectFailures(page, ['special', 'plain'])
      const popover = await addFilter(page, field)
      await popover.getByRole('combobox', { name: field }).fill(value.slice(0, 2))
      await popover.getByRole('option', { name: value }).click()
      await expectFailures(page, ['special'])
      await removeChip(page, `${field.toLowerCase()}: ${value}`)
      await expectFailures(page, ['special', 'plain'])
    })
  })

  it('limits it by metadata, whose numbers are numbers', async () => {
    await prepare()
    await bench.visit('/letters', async (page) => {
      for (const [key, value] of [
        ['region', 'eu'],
        ['size', '12'],
      ] as const) {
        const popover = await addFilter(page, 'Metadata')
        await popover.getByRole('combobox', { name: 'Key' }).fill(key)
        await popover.getByRole('textbox', { name: 'Value' }).fill(value)
        await popover.getByRole('button', { name: 'Apply' }).click()
        await page.getByRole('button', { name: `filter metadata ${key}: ${value}` }).waitFor()
      }
      await expectFailures(page, ['special'])
      await removeChip(page, 'metadata region: eu')
      await page.waitForURL((url) => url.search === '?metadata.size=12')
      await expectFailures(page, ['special'])
    })
  })

  it('limits it by time: a range that ends now, or two times', async () => {
    await prepare()
    await bench.visit('/letters', async (page) => {
      const popover = await addFilter(page, 'Time range')
      await popover.getByRole('button', { name: 'last 24 hours' }).click()
      await page.waitForURL(/last=24h/)
      await expectFailures(page, ['special', 'plain'])
      await removeChip(page, 'time: last 24 hours')
      await page.waitForURL((url) => url.search === '')
      await addFilter(page, 'Time range')
      await popover.getByLabel('until before').fill('2020-01-01T00:00')
      await popover.getByRole('button', { name: 'Apply' }).click()
      await page.getByText('No letter matches').waitFor()
      await page.getByRole('main').getByRole('button', { name: 'Clear filters' }).last().click()
      await expectFailures(page, ['special', 'plain'])
    })
  })

  it('follows what is typed, and says so when nothing matches', async () => {
    await prepare()
    await bench.visit('/letters', async (page) => {
      const search = page.getByRole('searchbox', { name: 'Search errors and queues' })
      await search.fill('spec')
      await expectFailures(page, ['special'])
      await search.fill('nothing has this')
      await page.getByText('No letter matches').waitFor()
      await search.fill('')
      await expectFailures(page, ['special', 'plain'])
    })
  })
}

function testLook(bench: DashboardBench): void {
  it('is newest or oldest first', async () => {
    await bench.captureAll(['a', 'b'].map((message) => ({ queue: 'order', error: { message } })))
    await bench.visit('/letters?queue=order', async (page) => {
      await expectFailures(page, ['b', 'a'])
      const order = page.getByRole('radiogroup', { name: 'Order' })
      await order.getByText('Oldest').click()
      await expectFailures(page, ['a', 'b'])
      await page.waitForURL(/order=oldest/)
      await order.getByText('Newest').click()
      await expectFailures(page, ['b', 'a'])
    })
  })

  it('is selected row by row and in ranges, with keys and with the mouse', async () => {
    const names = ['e', 'd', 'c', 'b', 'a']
    await bench.captureAll(names.map((message) => ({ queue: 'rows', error: { message } })))
    await bench.visit('/letters?queue=rows', async (page) => {
      const grid = page.getByRole('grid', { name: 'Letters' })
      const row = (name: string) => grid.getByRole('row').filter({ hasText: `Error: ${name}` })
      const expectSelected = (expected: string[]): Promise<void> =>
        expect
          .poll(() =>
            grid
              .locator('[aria-selected=true]')
              .getByRole('link', { name: /^Error/ })
              .allTextContents(),
          )
          .toEqual(expected.map((name) => `Error: ${name}`))
      await expectFailures(page, names.toReversed())
      await page.keyboard.press('j')
      await page.keyboard.press('x')
      await expectSelected(['a'])
      await grid.press('ArrowDown')
      await grid.press('Space')
      await expectSelected(['a', 'b'])
      await grid.press('Space')
      await expectSelected(['a'])
      await grid.press('Shift+ArrowDown')
      await expectSelected(['a', 'b', 'c'])
      await page.keyboard.press('Escape')
      await expectSelected([])
      await row('b').getByRole('checkbox').click()
      await row('e').click({ modifiers: ['Shift'], position: { x: 40, y: 4 } })
      await expectSelected(['b', 'c', 'd', 'e'])
      await page.getByText('4 selected').waitFor()
      await page.getByRole('button', { name: 'Clear selection' }).click()
      await expectSelected([])
    })
  })

  it('has the columns that the reader chooses, also after a reload', async () => {
    await bench.capture({ queue: 'wide', tenant: 'acme', metadata: { region: 'eu-west' } })
    await bench.visit('/letters?queue=wide', async (page) => {
      const column = (name: string) => page.getByRole('columnheader', { name, exact: true })
      await page.getByRole('button', { name: 'Columns' }).click()
      await page.getByRole('checkbox', { name: 'Tenant' }).check()
      await page.getByRole('checkbox', { name: 'Retries' }).uncheck()
      await page.getByRole('textbox', { name: 'Key of the metadata' }).fill('region')
      await page.getByRole('button', { name: 'Add', exact: true }).click()
      await column('region').waitFor()
      await page.reload()
      await page.getByRole('gridcell', { name: 'acme' }).waitFor()
      await page.getByRole('gridcell', { name: 'eu-west' }).waitFor()
      expect(await column('Retries').count()).toBe(0)
      await page.getByRole('button', { name: 'Columns' }).click()
      await page.getByRole('button', { name: 'Show the usual columns' }).click()
      await column('Retries').waitFor()
      await column('Tenant').waitFor({ state: 'detached' })
    })
  })

  it('is kept in a view, which can be renamed, changed and removed', async () => {
    await bench.capture({ queue: 'kept' })
    const created = await bench.client.createView({
      name: 'Viewed',
      filter: { queue: 'kept' },
      shared: true,
    })
    await bench.visit('/letters', async (page) => {
      await chooseItem(page, 'Saved views', 'Viewed')
      await page.waitForURL(/queue=kept/)
      await page.getByRole('radiogroup', { name: 'Order' }).getByText('Oldest').click()
      await page.waitForURL(/order=oldest/)
      await chooseItem(page, 'Viewed', 'Rename, share or update')
      const dialog = page.getByRole('dialog', { name: 'Change the view' })
      await dialog.getByRole('textbox', { name: 'Name' }).fill('Seen')
      await dialog.getByRole('switch', { name: /Replace its filter/ }).click()
      await dialog.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('button', { name: 'Seen' }).waitFor()
      expect(await bench.client.listViews()).toMatchObject([
        { id: created.id, name: 'Seen', order: 'oldest', filter: { queue: ['kept'] } },
      ])
      await chooseItem(page, 'Seen', 'Remove this view')
      await page.getByRole('button', { name: 'Saved views' }).waitFor()
    })
    expect(await bench.client.listViews()).toEqual([])
  })

  it('reads on while the reader scrolls', async () => {
    const count = 120
    const inputs = Array.from({ length: count }, (_, at) => ({
      queue: 'long',
      error: { message: `failure ${at}` },
    }))
    await bench.captureAll(inputs)
    await bench.visit('/letters?queue=long', async (page) => {
      const grid = page.getByRole('grid', { name: 'Letters' })
      await grid.press('End')
      await expect.poll(() => grid.getAttribute('aria-rowcount')).toBe(String(count + 1))
      await grid.press('End')
      await page.getByRole('link', { name: 'Error: failure 0', exact: true }).waitFor()
      await grid.press('Home')
      await page.getByRole('link', { name: `Error: failure ${count - 1}` }).waitFor()
    })
  })
}

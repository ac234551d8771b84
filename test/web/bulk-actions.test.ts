import type { Locator, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { deadLetterOne } from '../loops/dead-letter-one.ts'
import { benchForTests, chooseItem } from './dashboard-bench.ts'
import { dashboardStores } from './dashboard-stores.ts'

/** Selects the letters of a list, and opens the drawer of an action on them. */
async function openDrawer(page: Page, action: string): Promise<Locator> {
  await page.getByRole('checkbox', { name: 'Select the loaded letters' }).click()
  const button = page.getByRole('button', { name: action, exact: true })
  if (['Retry', 'Replay', 'Park'].includes(action)) await button.click()
  else await chooseItem(page, 'More', action)
  return page.getByRole('dialog', { name: / letters$/ })
}

/** Goes on from the plan to its run, and waits for its end. */
async function runPlan(drawer: Locator, title: string, count: number): Promise<void> {
  await drawer.getByRole('button', { name: 'Next: limits' }).click()
  await drawer.getByRole('button', { name: 'Continue' }).click()
  await drawer.getByRole('button', { name: title, exact: true }).click()
  await drawer.getByText(`${count} of ${count} letters`).waitFor()
}

describe.each(dashboardStores)('an action on many letters, on %s', (_, open) => {
  const bench = benchForTests(open)
  const captureMany = (queue: string, count = 3) =>
    bench.captureAll(
      Array.from({ length: count }, (_, at) => ({ queue, json: { order: at, currency: 'EURO' } })),
    )
  const statesIn = async (queue: string) => {
    const state = ['pending', 'resolved', 'parked', 'archived'] as const
    const { items } = await bench.client.listLetters({ queue, state: [...state] })
    return items.map((letter) => letter.state)
  }
  /** The bulk actions on letters of a queue, the newest first. */
  const actionsOn = async (queue: string) =>
    (await bench.client.listBulkActions({})).filter(({ queues }) => queues[queue])
  const actionOn = async (queue: string) => (await actionsOn(queue))[0]!

  it.each([
    ['Retry', 'Retry 3 letters', 'resolved'],
    ['Archive', 'Archive 3 letters', 'archived'],
  ])('%s changes the selected letters', async (action, title, state) => {
    const queue = `many-${state}`
    bench.dashboard.dlq.handle(queue, () => {})
    await captureMany(queue)
    await bench.visit(`/letters?queue=${queue}`, async (page) => {
      const drawer = await openDrawer(page, action)
      await drawer.getByText('parked in').waitFor()
      await drawer.getByRole('button', { name: 'Next: limits' }).click()
      await drawer.getByRole('button', { name: 'Back' }).click()
      await runPlan(drawer, title, 3)
    })
    await expect.poll(() => statesIn(queue)).toEqual([state, state, state])
  })

  it.each([
    ['Resolve', 'Resolve 2 letters', ['resolved', 'resolved']],
    ['Remove', 'Remove 2 letters', []],
  ])('%s asks for a reason first', async (action, title, states) => {
    const queue = `reason-${action.toLowerCase()}`
    await captureMany(queue, 2)
    await bench.visit(`/letters?queue=${queue}`, async (page) => {
      const drawer = await openDrawer(page, action)
      const show = drawer.getByRole('button', { name: 'Show what would happen' })
      await drawer.getByText('Enter a reason.').waitFor()
      expect(await show.isDisabled()).toBe(true)
      await drawer.getByRole('textbox', { name: 'Reason' }).fill('done by hand')
      await show.click()
      await runPlan(drawer, title, 2)
    })
    await expect.poll(() => statesIn(queue)).toEqual(states)
    expect(await actionOn(queue)).toMatchObject({ reason: 'done by hand', by: 'mia' })
  })

  it('replays messages to their mailbox', async () => {
    const requests = memoryMailbox({ name: 'replayed' })
    for (const id of ['m-1', 'm-2']) {
      await requests.send({ order: id }, { id })
      await deadLetterOne(bench.dashboard.dlq, requests)
    }
    await bench.visit('/letters?queue=replayed', async (page) => {
      const drawer = await openDrawer(page, 'Replay')
      await runPlan(drawer, 'Replay 2 letters', 2)
    })
    expect(await statesIn('replayed')).toEqual(['resolved', 'resolved'])
    expect(await requests.approximateCount()).toBe(2)
    await requests.close()
  })

  it('restores archived letters', async () => {
    const letters = await captureMany('restored', 2)
    for (const { id } of letters) await bench.client.archiveLetter({ id })
    await bench.visit('/letters?queue=restored&state=archived', async (page) => {
      const drawer = await openDrawer(page, 'Restore')
      await runPlan(drawer, 'Restore 2 letters', 2)
    })
    expect(await statesIn('restored')).toEqual(['parked', 'parked'])
  })

  it('tags letters, and changes their priority', async () => {
    await captureMany('tagged', 2)
    await bench.visit('/letters?queue=tagged', async (page) => {
      const drawer = await openDrawer(page, 'Tag')
      await drawer.getByLabel('Tags to add').fill('vip')
      await page.keyboard.press('Enter')
      await drawer.getByRole('button', { name: 'Show what would happen' }).click()
      await runPlan(drawer, 'Tag 2 letters', 2)
      await drawer.getByRole('button', { name: 'Close', exact: true }).last().click()
      await drawer.waitFor({ state: 'detached' })
      await chooseItem(page, 'More', 'Change the priority')
      await drawer.getByRole('radiogroup').getByText('critical').click()
      await drawer.getByRole('button', { name: 'Show what would happen' }).click()
      await runPlan(drawer, 'Change the priority of 2 letters', 2)
    })
    const { items } = await bench.client.listLetters({ queue: 'tagged' })
    const changed = { tags: ['vip'], priority: 'critical' }
    expect(items).toMatchObject([changed, changed])
  })

  it('edits payloads with a patch after a preview, and undoes that', async () => {
    const { id } = (await captureMany('patched', 2))[0]!
    const currencyOf = async () => (await bench.client.getLetter({ id })).payload.json
    await bench.visit('/letters?queue=patched', async (page) => {
      const drawer = await openDrawer(page, 'Edit')
      const patch = [{ op: 'replace', path: '/currency', value: 'EUR' }]
      await drawer.getByRole('textbox', { name: /JSON Patch/ }).fill(JSON.stringify(patch))
      await drawer.getByRole('textbox', { name: 'Reason' }).fill('EURO is no currency')
      await drawer.getByRole('button', { name: 'Show what would happen' }).click()
      await drawer.getByText('+ "EUR"').first().waitFor()
      await runPlan(drawer, 'Edit 2 letters', 2)
      expect(await currencyOf()).toMatchObject({ currency: 'EUR' })
      await drawer.getByRole('link', { name: 'Open the page of this action' }).click()
      await page.getByRole('button', { name: 'Undo this edit' }).click()
      const undo = page.getByRole('dialog', { name: 'Undo the edit of letters' })
      await undo.getByRole('textbox', { name: 'Reason' }).fill('it was right')
      await undo.getByRole('button', { name: 'Show what would happen' }).click()
      await runPlan(undo, 'Undo the edit of 2 letters', 2)
    })
    expect(await currencyOf()).toMatchObject({ currency: 'EURO' })
  })

  it('says which letters are not eligible, and why', async () => {
    const last = (await captureMany('mixed')).at(-1)!
    await bench.client.resolveLetter({ id: last.id })
    await bench.visit('/letters?queue=mixed', async (page) => {
      const drawer = await openDrawer(page, 'Retry')
      const section = drawer.getByRole('region', { name: 'Not eligible' })
      await section.getByText('1 letter not eligible').waitFor()
      await section.getByText(/resolved/).waitFor()
      await runPlan(drawer, 'Retry 2 letters', 2)
    })
    expect(await bench.client.getLetter({ id: last.id })).toMatchObject({ state: 'resolved' })
  })

  it('drops a plan when the drawer is closed, and lists it on request', async () => {
    await captureMany('dropped')
    await bench.visit('/letters?queue=dropped', async (page) => {
      // The first plan is still being made when the drawer is closed.
      const closed = Promise.withResolvers<void>()
      await page.route(/\/api\/bulk-actions$/, async (route) => {
        await closed.promise
        await route.continue()
      })
      const drawer = await openDrawer(page, 'Retry')
      await drawer.getByText('Plan', { exact: true }).waitFor()
      await page.keyboard.press('Escape')
      await drawer.waitFor({ state: 'detached' })
      closed.resolve()
      const statesOfPlans = async () => (await actionsOn('dropped')).map(({ state }) => state)
      await expect.poll(statesOfPlans).toEqual(['cancelled'])
      await page.getByText('3 selected').waitFor()
      await chooseItem(page, 'More', 'Archive')
      await drawer.getByRole('button', { name: 'Next: limits' }).waitFor()
      await page.keyboard.press('Escape')
      await expect.poll(statesOfPlans).toEqual(['cancelled', 'cancelled'])
      await page.unrouteAll()
      await page.goto('/bulk-actions')
      const { id } = await actionOn('dropped')
      const plan = page.locator(`a[href="/bulk-actions/${id}"]`)
      const all = page.getByRole('switch', { name: 'Also plans that nobody ran' })
      await all.click()
      await plan.waitFor()
      await all.click()
      await plan.waitFor({ state: 'detached' })
    })
    expect(await statesIn('dropped')).toEqual(['parked', 'parked', 'parked'])
  })

  it('pauses, resumes and cancels an action that runs', async () => {
    await captureMany('slow', 5)
    const { id } = await bench.client.planBulkAction({
      action: 'archive',
      filter: { queue: 'slow' },
      rate: 0.01,
    })
    const stateOf = async () => (await bench.client.getBulkAction({ id })).state
    await bench.visit(`/bulk-actions/${id}`, async (page) => {
      await page.getByRole('button', { name: 'Archive 5 letters' }).click()
      await page.getByRole('button', { name: 'Pause', exact: true }).click()
      await page.getByRole('button', { name: 'Resume' }).waitFor()
      expect(await stateOf()).toBe('paused')
      await page.getByRole('button', { name: 'Resume' }).click()
      await page.getByRole('button', { name: 'Pause', exact: true }).waitFor()
      expect(await stateOf()).toBe('running')
      await page.getByRole('button', { name: 'Cancel the rest' }).click()
      await page.getByRole('button', { name: 'Keep it' }).click()
      expect(await stateOf()).toBe('running')
      await page.getByRole('button', { name: 'Cancel the rest' }).click()
      await page.getByRole('button', { name: /^Leave out the other/ }).click()
      await page.getByText('cancelled', { exact: true }).first().waitFor()
    })
    expect(await stateOf()).toBe('cancelled')
    expect((await statesIn('slow')).filter((state) => state === 'parked').length).toBeGreaterThan(0)
  })
})

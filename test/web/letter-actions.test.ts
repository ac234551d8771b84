import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { deadLetterOne } from '../loops/dead-letter-one.ts'
import { benchForTests, chooseItem } from './dashboard-bench.ts'
import { dashboardStores } from './dashboard-stores.ts'

describe.each(dashboardStores)('an action on one letter, on %s', (_, open) => {
  const bench = benchForTests(open)
  const letterOf = (id: string) => bench.client.getLetter({ id })
  const stateOf = async (id: string) => (await letterOf(id)).state
  const hasState = (page: Page, state: string): Promise<void> =>
    page.getByRole('main').getByText(state, { exact: true }).first().waitFor()

  it('retries a letter', async () => {
    const { id } = await bench.capture({ queue: 'retry' })
    await bench.visit(`/letters/${id}`, async (page) => {
      await page.getByRole('button', { name: 'Retry now' }).click()
      await hasState(page, 'pending')
    })
    expect(await letterOf(id)).toMatchObject({ history: [{}, { action: 'retry', actor: 'mia' }] })
  })

  it('parks a letter by its key, with a note for the person who decides', async () => {
    const { id } = await bench.capture({ queue: 'park', maxRetries: 3 })
    await bench.visit(`/letters/${id}`, async (page) => {
      await hasState(page, 'pending')
      await page.keyboard.press('p')
      const dialog = page.getByRole('dialog', { name: 'Park this letter' })
      await dialog.getByRole('textbox', { name: /Note for the person/ }).fill('ask finance')
      await dialog.getByRole('button', { name: 'Park' }).click()
      await hasState(page, 'parked')
      await page.getByText('ask finance').first().waitFor()
    })
    const { state, history } = await letterOf(id)
    expect(state).toBe('parked')
    expect(history.at(-1)).toMatchObject({ action: 'park', note: 'ask finance', actor: 'mia' })
  })

  it.each([
    ['Requeue', 'pending'],
    ['Resolve', 'resolved'],
    ['Discard', 'archived'],
  ] as const)('ends a review with %s, so that the letter is %s', async (decision, state) => {
    const { id } = await bench.capture({ queue: 'review' })
    await bench.visit(`/letters/${id}`, async (page) => {
      await page.getByRole('button', { name: 'Review…' }).click()
      const dialog = page.getByRole('dialog', { name: 'Review this letter' })
      await dialog.getByRole('radio', { name: decision }).check()
      await dialog.getByRole('textbox', { name: 'Note' }).fill('decided')
      await dialog.getByRole('button', { name: decision }).click()
      await hasState(page, state)
    })
    expect((await letterOf(id)).history.at(-1)).toMatchObject({
      action: 'review',
      to: state,
      note: 'decided',
    })
  })

  it('leaves the keys to a dialog above the page', async () => {
    const { id } = await bench.capture({ queue: 'covered', maxRetries: 3 })
    await bench.visit(`/letters/${id}`, async (page) => {
      await hasState(page, 'pending')
      await page.keyboard.press('p')
      const dialog = page.getByRole('dialog', { name: 'Park this letter' })
      const cancel = dialog.getByRole('button', { name: 'Cancel' })
      await cancel.press('a')
      await cancel.press('r')
      await cancel.click()
      await dialog.waitFor({ state: 'detached' })
    })
    expect(await letterOf(id)).toMatchObject({ state: 'pending', version: 1 })
  })

  it('resolves a letter without another run', async () => {
    const { id } = await bench.capture({ queue: 'resolve' })
    await bench.visit(`/letters/${id}`, async (page) => {
      await chooseItem(page, 'More actions', 'Resolve')
      await hasState(page, 'resolved')
    })
    expect(await letterOf(id)).toMatchObject({ state: 'resolved', retries: 0 })
  })

  it('archives a letter by its key, takes that back, and restores it later', async () => {
    const { id } = await bench.capture({ queue: 'archive' })
    await bench.visit(`/letters/${id}`, async (page) => {
      await hasState(page, 'parked')
      await page.keyboard.press('a')
      await page.getByText('The letter is archived.').waitFor()
      expect(await stateOf(id)).toBe('archived')
      await page.getByRole('button', { name: 'Undo', exact: true }).click()
      await page.getByRole('button', { name: 'Retry now' }).waitFor()
      expect(await stateOf(id)).toBe('parked')
      await chooseItem(page, 'More actions', 'Archive')
      await page.getByRole('button', { name: 'Restore' }).click()
      await page.getByRole('button', { name: 'Retry now' }).waitFor()
    })
    const actions = (await letterOf(id)).history.map(({ action }) => action)
    expect(actions).toEqual(['capture', 'archive', 'restore', 'archive', 'restore'])
  })

  it('removes a letter after a question, and then says that it is gone', async () => {
    const { id } = await bench.capture({ queue: 'remove' })
    await bench.visit(`/letters/${id}`, async (page) => {
      await chooseItem(page, 'More actions', 'Remove')
      const dialog = page.getByRole('dialog', { name: 'Remove this letter' })
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await dialog.waitFor({ state: 'detached' })
      expect(await stateOf(id)).toBe('parked')
      await chooseItem(page, 'More actions', 'Remove')
      await dialog.getByRole('button', { name: 'Remove 1 letter' }).click()
      await page.getByRole('heading', { name: 'Letters', exact: true }).waitFor()
      await page.goto(`/letters/${id}`)
      await page.getByText('It may have been removed.').waitFor()
    })
    await expect(letterOf(id)).rejects.toMatchObject({ problem: { status: 404 } })
  })

  it('shows what edits have changed, also one of another person, and undoes an edit', async () => {
    const { id } = await bench.capture({ queue: 'undo', json: { currency: 'EURO' } })
    await bench.client.editLetter({ id, json: { currency: 'EUR' }, reason: 'no such currency' })
    await bench.visit(`/letters/${id}`, async (page) => {
      const changes = page.getByRole('textbox', { name: 'Changes between the versions' })
      await expect.poll(() => changes.textContent()).toMatch(/EURO.*EUR/s)
      await bench.client.editLetter({ id, json: { currency: 'USD' }, reason: 'in dollars' })
      // The page reads its letter again when the feed has new counts.
      await bench.capture({ queue: 'undo' })
      await expect.poll(() => changes.textContent()).toMatch(/EUR.*USD/s)
      await page.getByRole('combobox', { name: 'Before' }).click()
      await page.getByRole('option', { name: 'Version 3 by test' }).click()
      await page.getByText('These versions are the same.').waitFor()
      await chooseItem(page, 'More actions', 'Undo edit')
      await page.getByText(/version 4/).waitFor()
    })
    expect((await letterOf(id)).payload).toMatchObject({ version: 4, json: { currency: 'EUR' } })
  })

  it('does not overwrite what another person has changed meanwhile', async () => {
    const { id } = await bench.capture({ queue: 'conflict' })
    await bench.visit(`/letters/${id}`, async (page) => {
      await hasState(page, 'parked')
      await page.keyboard.press('e')
      const drawer = page.getByRole('dialog', { name: 'Edit the payload' })
      await drawer.getByRole('textbox', { name: 'Payload' }).press('Control+a')
      await page.keyboard.insertText('{ "order": 2 ')
      await drawer.getByText(/not valid JSON/).waitFor()
      await page.keyboard.insertText('}')
      await bench.client.noteLetter({ id, text: 'somebody else was here' })
      await drawer.getByRole('button', { name: 'Review the changes' }).click()
      await drawer.getByRole('textbox', { name: 'Reason' }).fill('wrong order')
      await drawer.getByRole('button', { name: 'Save as version 2' }).click()
      await drawer.getByText('The letter has changed since you opened it').waitFor()
    })
    expect((await letterOf(id)).payload).toMatchObject({ version: 1, json: { order: 1 } })
  })

  it('adds a note', async () => {
    const { id } = await bench.capture({ queue: 'note' })
    await bench.visit(`/letters/${id}`, async (page) => {
      await page.getByRole('textbox', { name: 'New note' }).fill('The customer called.')
      await page.getByRole('button', { name: 'Add note' }).click()
      await page.getByText('No notes yet.').waitFor({ state: 'detached' })
    })
    const notes = (await letterOf(id)).history.filter(({ action }) => action === 'note')
    expect(notes).toMatchObject([{ note: 'The customer called.', actor: 'mia' }])
  })

  it('replays a message to its mailbox, and links the letters of the message', async () => {
    const requests = memoryMailbox({ name: 'requests' })
    await requests.send({ order: 1 }, { id: 'm-1' })
    const { dlq } = bench.dashboard
    const first = await deadLetterOne(dlq, requests)
    await bench.visit(`/letters/${first.id}`, async (page) => {
      await chooseItem(page, 'More actions', 'Replay')
      const dialog = page.getByRole('dialog', { name: 'Replay this letter' })
      await dialog.getByText(/published to mailbox requests again/).waitFor()
      await dialog.getByRole('button', { name: 'Replay 1 letter' }).click()
      await hasState(page, 'resolved')
      const second = await deadLetterOne(dlq, requests)
      expect(await letterOf(first.id)).toMatchObject({ state: 'resolved', replays: 1 })
      await page.goto(`/letters/${second.id}`)
      const table = page.getByRole('table', { name: 'Replays of the same message' })
      await table.getByText('This letter').waitFor()
      await table.getByRole('link').click()
      await page.waitForURL(new RegExp(first.id))
    })
    await requests.close()
  })
})

import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { atDepth } from '../depth.ts'
import { openDashboard, type TestDashboard } from './a-dashboard.ts'
import { launchBrowser, openSignedIn, type WatchedPage } from './browser.ts'
import { hostileStrings } from './hostile-strings.ts'
import { waitUntilLoaded } from './sample-pages.ts'

/** Letters whose pages are opened: each has all strings somewhere, and others as its names. */
const opened = atDepth(4, 8)
const spread = Math.floor(hostileStrings.length / opened)

/** Every so many strings are part of the address of a page. */
const inAddress = atDepth(50, 20)

let browser: Browser
let dashboard: TestDashboard
let visitor: WatchedPage
let ids: string[]
beforeAll(async () => {
  browser = await launchBrowser()
  const worst = hostileStrings[0]!
  dashboard = await openDashboard(undefined, {
    alerts: [{ name: 'parked', when: { metric: 'parked', above: 0 }, severity: 'critical' }],
    alertEveryMs: 1000,
    app: { name: worst, version: hostileStrings[1]!, host: hostileStrings[2]! },
  })
  ids = await captureAll(dashboard)
  await annotate(dashboard, ids)
  visitor = await openSignedIn(browser, dashboard, '/', {
    as: { name: worst },
    reducedMotion: 'reduce',
  })
}, 120_000)
afterAll(async () => {
  await browser?.close()
  await dashboard?.close()
})

/** Names of queues have no control characters. */
function toQueue(text: string): string {
  // oxlint-disable-next-line no-control-regex -- the pattern searches for control characters
  return text.replaceAll(/[\u0000-\u001f\u007f]/g, '') || 'empty'
}

/** Puts every string into every field of letters. */
function captureAll({ dlq }: TestDashboard): Promise<string[]> {
  const all = Object.fromEntries(hostileStrings.map((text, index) => [`${index} ${text}`, text]))
  return dlq.enqueueAll(
    hostileStrings.map((text, index) => ({
      operation: {
        type: toQueue(text),
        method: text,
        endpoint: text,
        payload: index % spread === 0 ? all : { [text]: text },
      },
      error: Object.assign(new Error(text), { name: text, code: text, stack: stackOf(text) }),
      context: {
        tenant: text,
        lane: text,
        tags: [text],
        metadata: index % spread === 0 ? all : { key: text },
        headers: { 'x-header': text },
      },
    })),
  )
}

/** Puts strings into what people write: notes, names and reasons. */
async function annotate(dashboard: TestDashboard, ids: string[]): Promise<void> {
  const { client, dlq } = dashboard
  const { items: groups } = await client.listGroups({ limit: 100 })
  for (const [index, text] of hostileStrings.entries()) {
    if (index % spread === 0) await client.parkLetter({ id: ids[index]!, note: text })
    await client.noteLetter({ id: ids[index - (index % spread)]!, text })
    await client.noteGroup({ fingerprint: groups[index % opened]!.fingerprint, text })
    const group = groups[index % groups.length]!
    await client.assignGroup({ fingerprint: group.fingerprint, assignee: text })
    await dashboard.token({ name: text })
    if (index % 4 > 0) continue
    if (text.trim() !== '') await client.createView({ name: text.slice(0, 100), filter: {} })
    await client.pauseQueue({ queue: toQueue(text), reason: text })
    await dlq.plan('tag', { queue: toQueue(text) }, { by: text, reason: text, addTags: [text] })
  }
}

function stackOf(text: string): string {
  return `${text}: ${text}\n    at ${text} (${text}:1:1)\n    at run (/app/node_modules/${text}/a.js:1:2)`
}

/** Whether text has become code, an element that runs or a link to elsewhere. */
async function checkHarmless({ page, problems }: WatchedPage): Promise<void> {
  const found = await page.evaluate<string[]>(`[
    ...(window.__xss === undefined && {}.__xss === undefined ? [] : ['executed']),
    ...[...document.querySelectorAll('iframe, object, embed, base, form[action]')].map((one) => one.outerHTML),
    ...[...document.querySelectorAll('a[href]')]
      .map((link) => link.href)
      .filter((href) => !href.startsWith(location.origin + '/')),
  ]`)
  expect(found).toEqual([])
  expect(problems).toEqual([])
}

async function visit(path: string): Promise<Page> {
  const { page } = visitor
  await page.goto(path)
  await waitUntilLoaded(page)
  await checkHarmless(visitor)
  return page
}

describe('hostile text', () => {
  it('has 200 strings', () => {
    expect(new Set(hostileStrings).size).toBeGreaterThanOrEqual(200)
  })

  it.each([
    '/',
    '/groups',
    '/bulk-actions?plans=all',
    '/queues',
    '/workers',
    '/mailboxes',
    '/pipeline',
    '/alerts',
    '/settings',
    '/settings/tokens',
    '/settings/audit',
  ])('is only text on the page %s', async (path) => {
    await visit(path)
    expect(visitor.problems).toEqual([])
  })

  it('is only text in the list of letters, its filters and its views', async () => {
    const columns = ['state', 'queue', 'tenant', 'tags', 'lane', 'failure.code', 'metadata.key']
    const search = columns.map((column) => `columns=${column}`).join('&')
    const page = await visit(`/letters?${search}&columns=app.version&columns=app.host`)
    await page.getByRole('grid', { name: 'Letters' }).focus()
    for (const key of ['End', 'Home', 'j']) {
      await page.keyboard.press(key)
      await checkHarmless(visitor)
    }
    await page.getByRole('button', { name: 'Saved views' }).click()
    await page.getByRole('menuitem', { name: 'Save this list as a view' }).waitFor()
    await checkHarmless(visitor)
    await page.keyboard.press('Escape')
    for (const text of hostileStrings.filter((_, index) => index % inAddress === 0)) {
      const value = encodeURIComponent(text)
      await visit(`/letters?queue=${value}&tenant=${value}&tag=${value}&text=${value}`)
    }
    expect(visitor.problems).toEqual([])
  })

  it('is only text on pages of letters and their dialogs', async () => {
    for (let index = 0; index < hostileStrings.length; index += spread) {
      const page = await visit(`/letters/${ids[index]!}`)
      await page.getByRole('button', { name: 'More actions' }).click()
      await page.getByRole('menuitem').first().waitFor()
      await checkHarmless(visitor)
    }
    const page = await visit(`/letters/${ids[0]!}`)
    await page.getByRole('button', { name: 'Edit…' }).click()
    await page.getByRole('dialog').getByRole('textbox', { name: 'Payload' }).waitFor()
    await checkHarmless(visitor)
    expect(visitor.problems).toEqual([])
  })

  it('is only text on pages of groups, queues and bulk actions', async () => {
    const { items: groups } = await dashboard.client.listGroups({ limit: opened })
    expect(groups).toHaveLength(opened)
    for (const { fingerprint, queue } of groups) {
      await visit(`/groups/${encodeURIComponent(fingerprint)}`)
      await visit(`/queues/${encodeURIComponent(queue)}`)
    }
    const actions = await dashboard.client.listBulkActions()
    expect(actions.length).toBeGreaterThanOrEqual(opened)
    for (const { id } of actions.slice(0, opened)) await visit(`/bulk-actions/${id}`)
    expect(visitor.problems).toEqual([])
  })

  it('is only text in dialogs, messages of errors and the search', async () => {
    const [worst] = hostileStrings as [string]
    const page = await visit('/settings/tokens')
    await page
      .getByRole('button', { name: `Revoke ${worst}` })
      .first()
      .click()
    await page.getByRole('dialog').waitFor()
    await checkHarmless(visitor)
    await page.keyboard.press('Escape')
    await visit(`/queues/${encodeURIComponent(worst)}`)
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('dialog').getByRole('textbox').fill(worst)
    await page.getByRole('button', { name: 'Pause the queue' }).click()
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    await checkHarmless(visitor)
    await visit('/alerts')
    await page.getByRole('textbox', { name: 'Name of a target' }).fill(worst)
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByRole('alert').first().waitFor()
    await checkHarmless(visitor)
    await page.keyboard.press('Control+k')
    await page.getByRole('textbox', { name: 'Search' }).fill('<')
    await page.getByText('Search letters for “<”').waitFor()
    await checkHarmless(visitor)
    expect(visitor.problems).toEqual([])
  })

  it('is only text in an address', async () => {
    for (const text of hostileStrings.filter((_, index) => index % inAddress === 0)) {
      await visitor.page.goto(`/letters/${encodeURIComponent(text)}`)
      await visitor.page.getByRole('main').waitFor()
      await checkHarmless(visitor)
    }
    expect(visitor.problems).toEqual([])
  })
})

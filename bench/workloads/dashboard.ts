import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { createToken, startServer } from '../../test/load/server-process.ts'
import { launchBrowser, openPage, signIn } from '../../test/web/browser.ts'
import { median, quantile, result, type Bench, type Result } from '../harness.ts'
import { fillGroups } from './groups.ts'

const visits = 10
const scrolls = 300
const scrollPixels = 700

/** Filters as the address of the list has them. The last two match no letter. */
const filters = [
  'state=pending',
  'queue=queue-3',
  'queue=queue-3&queue=queue-7&priority=critical',
  'text=ECONNRESET',
  'category=network',
  'state=exhausted',
  'category=permission',
]

/** The list of letters in Chromium, with many letters in the store. */
export async function dashboard(bench: Bench): Promise<Result[]> {
  if (bench.kind !== 'sqlite' && bench.kind !== 'postgres') return []
  await fillGroups(bench)
  const store = bench.location.url('groups')
  const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-dashboard-'))
  const token = await createToken(store)
  const server = await startServer({ store, folder })
  const browser = await launchBrowser()
  try {
    const { page } = await openPage(browser, server.url)
    await signIn(page, token)
    await page.addInitScript(watchRows)
    const first = await timesOf(visits, () => visit(page, '/letters'))
    const answers: number[] = []
    for (const filter of filters) {
      const times = await timesOf(visits, () =>
        request(page, `/api/letters?limit=100&partial=true&${filter}`),
      )
      bench.log(`  ${filter}: ${median(times).toFixed(1)} ms`)
      answers.push(...times)
    }
    const blank = await scrollDown(page)
    const at = `at ${bench.sizes.largeBacklog} letters`
    return [
      result(bench.kind, `first rows after navigation ${at}, p50`, median(first), 'ms', {
        atMost: 500,
      }),
      result(bench.kind, `answer of a filter ${at}, p99`, quantile(answers, 0.99), 'ms', {
        atMost: 300,
      }),
      result(bench.kind, `steps of ${scrolls} with blank rows while scrolling`, blank, '', {
        atMost: 0,
      }),
    ]
  } finally {
    await browser.close()
    await server.end('SIGTERM')
    rmSync(folder, { recursive: true })
  }
}

async function timesOf(count: number, work: () => Promise<number>): Promise<number[]> {
  const times: number[] = []
  await work()
  for (let n = 0; n < count; n++) times.push(await work())
  return times
}

/** Opens the page, and returns when its first row was drawn, measured by the page itself. */
async function visit(page: Page, path: string): Promise<number> {
  await page.goto(path, { waitUntil: 'commit' })
  return page.evaluate<number>('globalThis.firstRow')
}

/** Runs in the page: notes the time of the first frame that has a row of the list. */
const watchRows = `
  globalThis.firstRow = new Promise((resolve) => {
    new MutationObserver((_, observer) => {
      if (!document.querySelector('[role="grid"] [role="gridcell"]')) return
      observer.disconnect()
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
    }).observe(document, { childList: true, subtree: true })
  })
`

function request(page: Page, path: string): Promise<number> {
  return page.evaluate(async (address) => {
    const startMs = performance.now()
    const response = await fetch(address)
    await response.json()
    if (!response.ok) throw new Error(`${address} answered ${response.status}`)
    return performance.now() - startMs
  }, path)
}

/** Scrolls fast, and counts the steps after which rows in view are missing. */
async function scrollDown(page: Page): Promise<number> {
  await visit(page, '/letters')
  const grid = page.getByRole('grid', { name: 'Letters' })
  await grid.hover()
  let blank = 0
  for (let n = 0; n < scrolls; n++) {
    await page.mouse.wheel(0, scrollPixels)
    const isFull = await page.evaluate<boolean>(isListFull)
    if (!isFull) blank++
  }
  return blank
}

/** Runs in the page: waits for two frames, then tests the middle and the end of the list. */
const isListFull = `(async () => {
  for (let frame = 0; frame < 2; frame++) await new Promise((resolve) => requestAnimationFrame(resolve))
  const { top, bottom, left } = document.querySelector('[role="grid"]').getBoundingClientRect()
  const hasRow = (y) => document.elementFromPoint(left + 40, y)?.closest('[role="row"]') != null
  return hasRow((top + bottom) / 2) && hasRow(bottom - 20)
})()`

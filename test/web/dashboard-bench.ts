import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import type { InputOf, OutputOf } from '../../src/api/endpoints.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import type { ServerOptions } from '../../src/server/parts.ts'
import type { NewToken } from '../../src/server/tokens.ts'
import { openDashboard, openSqlite, type OpenStore, type TestDashboard } from './a-dashboard.ts'
import {
  createSession,
  gotoWithFeed,
  launchBrowser,
  openPage,
  type WatchedPage,
} from './browser.ts'

type Capture = InputOf<'capture'>
type Captured = OutputOf<'capture'>

/** What a test does on a page. It may take problems that it causes on purpose from the list. */
type Steps = (page: Page, problems: string[]) => Promise<void>

/** A dashboard, a browser and a page that all tests of a block use. */
export class DashboardBench<T extends TestDashboard = TestDashboard> {
  browser!: Browser
  dashboard!: T
  readonly #options: BrowserContextOptions
  #visitor: WatchedPage | undefined
  /** The token that the session of the page is from. Undefined: there may be no session. */
  #caller: string | undefined

  constructor(options: BrowserContextOptions) {
    this.#options = options
  }

  get client(): TestDashboard['client'] {
    return this.dashboard.client
  }

  /** Stores a failure that waits for a person, unless `input` says otherwise. */
  capture(input: Partial<Capture> & { queue: string }): Promise<Captured> {
    return this.client.capture({
      json: { order: 1 },
      error: { message: 'it failed' },
      maxRetries: 0,
      ...input,
    })
  }

  /** Stores failures one after the other, the oldest first. */
  async captureAll(inputs: readonly Parameters<DashboardBench['capture']>[0][]) {
    const captured: Captured[] = []
    for (const input of inputs) captured.push(await this.capture(input))
    return captured
  }

  /**
   * Opens a page, does what `steps` does on it, and fails if its console has errors. The pages of a
   * bench share a browser context, because a new one loads and compiles all scripts again. Default:
   * the session of mia, with what her browser keeps.
   */
  async visit(path: string, steps: Steps, as: Partial<NewToken> = {}): Promise<void> {
    await this.#watch(steps, async (page) => {
      await this.#signIn(page, as)
      await gotoWithFeed(page, path)
    })
  }

  /** Like `visit`, in a browser that has neither a session nor choices of its reader. */
  async visitSignedOut(path: string, steps: Steps): Promise<void> {
    await this.#watch(steps, async (page) => {
      await this.#signOut(page)
      await page.goto(path)
    })
  }

  async #watch(steps: Steps, load: (page: Page) => Promise<void>): Promise<void> {
    this.#visitor ??= await this.#openPage()
    const { page, problems } = this.#visitor
    let isDone = false
    try {
      await load(page)
      await steps(page, problems)
      expect(problems).toEqual([])
      isDone = true
    } finally {
      if (!isDone) await this.#close()
    }
  }

  async #openPage(): Promise<WatchedPage> {
    const options = { reducedMotion: 'reduce', ...this.#options } as const
    const visitor = await openPage(this.browser, this.dashboard.url, options)
    await visitor.page.addInitScript(shortenWaits)
    return visitor
  }

  async #close(): Promise<void> {
    const closed = this.#visitor
    this.#visitor = undefined
    this.#caller = undefined
    await closed?.page.context().close()
  }

  async #signIn(page: Page, as: Partial<NewToken>): Promise<void> {
    const caller = JSON.stringify(as)
    if (caller === this.#caller) return
    await this.#signOut(page)
    await createSession(page, await this.dashboard.token(as))
    this.#caller = caller
  }

  async #signOut(page: Page): Promise<void> {
    this.#caller = undefined
    if (page.url() === 'about:blank') return
    await page.evaluate('localStorage.clear()')
    await page.goto('about:blank')
    await page.context().clearCookies()
  }
}

/**
 * Runs in a page before its scripts. The page waits for two seconds before it reads again what the
 * feed says is outdated, and reads an open plan every five seconds.
 */
const shortenWaits = `{
  const { setTimeout: waitFor, setInterval: repeat } = window
  window.setTimeout = (run, ms, ...args) => waitFor(run, ms === 2000 ? 200 : ms, ...args)
  window.setInterval = (run, ms, ...args) => repeat(run, ms === 5000 ? 500 : ms, ...args)
}`

/** Opens a bench before the tests of a block, and closes it after them. */
export function benchForTests(
  open: OpenStore = openSqlite,
  options: QueueOptions = {},
  more: Partial<ServerOptions> = {},
  context: BrowserContextOptions = {},
): DashboardBench {
  return benchOn(() => openDashboard(open, { alerts: false, ...options }, more), context)
}

/** Like `benchForTests`, on a dashboard that `open` opens. */
export function benchOn<T extends TestDashboard>(
  open: () => Promise<T>,
  context: BrowserContextOptions = {},
): DashboardBench<T> {
  const bench = new DashboardBench<T>(context)
  beforeAll(async () => {
    bench.browser = await launchBrowser()
    bench.dashboard = await open()
  })
  afterAll(async () => {
    await bench.browser?.close()
    await bench.dashboard?.close()
  })
  return bench
}

/** Opens a menu, and chooses the entry that begins with `item`. */
export async function chooseItem(page: Page, menu: string, item: string): Promise<void> {
  await page.getByRole('button', { name: menu }).click()
  await page.getByRole('menuitem', { name: new RegExp(`^${item}`) }).click()
}

/** Rights to read in a test what the page has put into the clipboard. */
export const withClipboard: BrowserContextOptions = {
  permissions: ['clipboard-read', 'clipboard-write'],
}

export function readClipboard(page: Page): Promise<string> {
  return page.evaluate<string>('navigator.clipboard.readText()')
}

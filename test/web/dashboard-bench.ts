import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import type { InputOf, OutputOf } from '../../src/api/endpoints.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import type { ServerOptions } from '../../src/server/parts.ts'
import type { NewToken } from '../../src/server/tokens.ts'
import { openDashboard, openSqlite, type OpenStore, type TestDashboard } from './a-dashboard.ts'
import { gotoWithFeed, launchBrowser, openSignedIn, type WatchedPage } from './browser.ts'

type Capture = InputOf<'capture'>
type Captured = OutputOf<'capture'>

/** A dashboard and a browser that all tests of a block use. */
export class DashboardBench {
  browser!: Browser
  dashboard!: TestDashboard
  #shared: WatchedPage | undefined

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
   * Opens a page, does what `steps` does on it, and fails if its console has errors. Without
   * `options`, pages share the session of mia and what her browser keeps: that is much faster.
   */
  async visit(
    path: string,
    steps: (page: Page) => Promise<void>,
    options?: BrowserContextOptions & { as?: Partial<NewToken> },
  ): Promise<void> {
    const watched = options ? await this.#open(path, options) : await this.#openShared(path)
    let isDone = false
    try {
      await steps(watched.page)
      expect(watched.problems).toEqual([])
      isDone = true
    } finally {
      if (options || !isDone) await this.#close(watched)
    }
  }

  async #open(path: string, options: BrowserContextOptions): Promise<WatchedPage> {
    return openSignedIn(this.browser, this.dashboard, path, { reducedMotion: 'reduce', ...options })
  }

  async #openShared(path: string): Promise<WatchedPage> {
    if (!this.#shared) return (this.#shared = await this.#open(path, {}))
    const { page } = this.#shared
    await gotoWithFeed(page, path)
    return this.#shared
  }

  async #close(watched: WatchedPage): Promise<void> {
    if (watched === this.#shared) this.#shared = undefined
    await watched.page.context().close()
  }
}

/** Opens a bench before the tests of a block, and closes it after them. */
export function benchForTests(
  open: OpenStore = openSqlite,
  options: QueueOptions = {},
  more: Partial<ServerOptions> = {},
): DashboardBench {
  const bench = new DashboardBench()
  beforeAll(async () => {
    bench.browser = await launchBrowser()
    bench.dashboard = await openDashboard(open, { alerts: false, ...options }, more)
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

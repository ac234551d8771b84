import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { findProgram } from '../../scripts/servers/machine.ts'
import type { TestDashboard } from './a-dashboard.ts'

/** Starts the Chromium of the machine. `npm run servers -- install` installs it. */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = findProgram('chromium')
  if (!executablePath) throw new Error('chromium is missing: npm run servers -- install')
  // Drawing in software takes most of the time otherwise.
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-software-rasterizer'],
  })
}

export interface WatchedPage {
  page: Page
  /** Errors of scripts, violations of the security policy, and requests to other servers. */
  problems: string[]
}

/** Errors of the console that tests cause on purpose: answers with an error status. */
const expected = /^Failed to load resource/

/** Opens a page in a context of its own, and records what must not happen in it. */
export async function openPage(
  browser: Browser,
  baseURL: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({
    baseURL,
    viewport: { width: 1280, height: 800 },
    ...options,
  })
  const page = await context.newPage()
  const problems: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' && !expected.test(message.text())) problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(String(error)))
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    const { origin } = new URL(request.url())
    if (origin !== new URL(baseURL).origin && origin !== 'null')
      problems.push(`request to ${request.url()}`)
  })
  return { page, problems }
}

/** Signs in with a token through the form, as a person does. */
export async function signIn(page: Page, token: string, path = '/'): Promise<void> {
  await page.goto(path)
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.waitForURL((url) => url.pathname !== '/sign-in')
}

/** Opens a page with a session, without the form. */
export async function openSignedIn(
  browser: Browser,
  { url, token }: Pick<TestDashboard, 'url' | 'token'>,
  path = '/',
  { as = {}, ...options }: BrowserContextOptions & { as?: Parameters<typeof token>[0] } = {},
): Promise<WatchedPage> {
  const opened = await openPage(browser, url, options)
  await createSession(opened.page, await token(as))
  await gotoWithFeed(opened.page, path)
  return opened
}

/** Gives the browser context of a page the session of a token. */
export async function createSession(page: Page, token: string): Promise<void> {
  const response = await page.request.post('/api/session', {
    data: { token },
    headers: { 'x-redrive-csrf': '1' },
  })
  if (response.status() !== 201) throw new Error(`the sign-in answered ${response.status()}`)
}

/** Letters that are captured before the live feed is connected are not announced. */
export async function gotoWithFeed(page: Page, path: string): Promise<void> {
  const feed = page.waitForResponse(/\/api\/events/)
  await page.goto(path)
  await feed
}

// What a newcomer does first in a clone: `npm start`, then the address that it prints.
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import type { Browser, Page } from 'playwright-core'
import { createClient } from '../../src/api/client.ts'
import { launchBrowser, openPage } from '../web/browser.ts'
import { spawn } from '../processes.ts'

/** What the server prints for people. */
interface Printed {
  /** The address with the one-time code. */
  address: string
  token: string
}

/** Starts the server of a clone, looks at its dashboard, and stops it as it says. */
export async function takeFirstLook(clone: string, signal: AbortSignal): Promise<void> {
  // Its own group, so that a signal reaches npm and the server, as Ctrl-C does. Installing and
  // building, which come first, take minutes.
  const child = spawn('npm', ['start', '--', '--port', '0'], {
    cwd: clone,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const stop = (by: NodeJS.Signals): void => void process.kill(-child.pid!, by)
  const kill = (): void => stop('SIGKILL')
  signal.addEventListener('abort', kill)
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  let browser: Browser | undefined
  try {
    const printed = await readPrinted(child.stderr)
    browser = await launchBrowser()
    await lookAtDashboard(browser, printed)
    await browser.close()
    stop('SIGINT')
    // npm may end by the signal itself, which a shell reports as 130, too.
    const [exit, by] = await ended
    if (exit !== 130 && by !== 'SIGINT')
      throw new Error(`npm start exits with ${exit ?? by} after Ctrl-C, not with 130`)
  } finally {
    signal.removeEventListener('abort', kill)
    await browser?.close()
    if (child.exitCode === null && child.signalCode === null) kill()
  }
}

async function readPrinted(stderr: Readable): Promise<Printed> {
  let text = ''
  stderr.setEncoding('utf8')
  for await (const part of stderr.iterator({ destroyOnReturn: false })) {
    text += String(part)
    if (!text.includes('Stop:   Ctrl-C')) continue
    stderr.resume()
    const [, address] = /Open: +(\S+)/.exec(text) ?? []
    const [, token] = /Token: +(\S+)/.exec(text) ?? []
    if (address !== undefined && token !== undefined) return { address, token }
    throw new Error(`npm start printed no address:\n${text}`)
  }
  throw new Error(`npm start has ended:\n${text}`)
}

async function lookAtDashboard(browser: Browser, { address, token }: Printed): Promise<void> {
  const { origin, hash } = new URL(address)
  if (!hash.startsWith('#code=')) throw new Error(`${address} has no one-time code`)
  const { page, problems } = await openPage(browser, origin)
  await page.goto(address)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  if (page.url() !== `${origin}/`) throw new Error(`the address bar keeps ${page.url()}`)
  await waitForChange(page)
  const id = await retryLetter(page, origin)
  const { history } = await createClient({ url: origin, token }).getLetter({ id })
  if (!history.some(({ action, actor }) => action === 'retry' && actor === 'admin'))
    throw new Error(`the history of ${id} has no retry: ${JSON.stringify(history)}`)
  if (problems.length > 0) throw new Error(`the dashboard has problems: ${problems.join('\n')}`)
}

/** Waits until the number of open letters changes, without a reload. */
async function waitForChange(page: Page): Promise<void> {
  const open = page.getByRole('link', { name: /^Open\s*\d/ })
  const [count = ''] = /\S+$/.exec(await open.innerText()) ?? []
  await open.filter({ hasNotText: new RegExp(`(?<!\\d)${count}$`) }).waitFor()
}

/** Retries a parked letter that the demo leaves to people. Returns its id. */
async function retryLetter(page: Page, origin: string): Promise<string> {
  await page.goto(`${origin}/letters?queue=index-order&state=parked`)
  await page
    .getByRole('link', { name: /TypeError/ })
    .first()
    .click()
  await page.waitForURL(/\/letters\/[0-9a-f-]{36}/)
  const id = new URL(page.url()).pathname.split('/').at(-1)!
  await page.getByRole('button', { name: 'Retry now' }).click()
  const timeline = page.getByRole('listitem').filter({ hasText: 'by admin' })
  await timeline.first().waitFor()
  return id
}

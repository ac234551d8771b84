import { createHash } from 'node:crypto'
import { RedriveError } from '../../errors.ts'
import { unescaped, urlSettings } from '../url.ts'
import { retentionIn } from '../retention.ts'

/** Where a queue is. What is not said, the SDK finds in its own settings. */
export interface Address {
  endpoint?: string
  region?: string
  /** The queue's name; else it is made from that of the mailbox. */
  queue?: string
  /** Known already: nothing needs to be looked up or created. */
  queueUrl?: string
  retentionSeconds?: number
}

/**
 * `sqs://host:port/queue?region=eu-west-1` for a server of one's own, `sqs:///queue?region=eu-west-1` for AWS, or a queue's own URL as
 * AWS shows it. The queue may be left out: then it is called like the mailbox.
 */
export function addressOf(url: string): Address {
  if (!URL.canParse(url)) throw wrong()
  const { protocol, host, hostname, pathname, searchParams, username } = new URL(url)
  if (username !== '') throw wrong('has no secrets in it: the SDK finds them')
  const path = unescaped(pathname.replace(/^\//, ''))
  if (path.includes('%')) throw wrong()
  const known = ['retentionSeconds', ...(protocol === 'sqs:' ? (['region'] as const) : [])] as const
  const { region, ...settings } = urlSettings('SQS URL', searchParams, known)
  const retention = retentionIn(settings)
  if (protocol === 'https:' || protocol === 'http:')
    return { ...queueUrlOf(url, hostname, path), ...retention }
  if (protocol !== 'sqs:' || path.includes('/')) throw wrong()
  const address: Address = retention
  if (host !== '') address.endpoint = `http://${host}`
  if (path !== '') address.queue = path
  if (region !== undefined) address.region = region
  return address
}

/** The URL of a mailbox of this name with the same server and account. */
export function urlBeside(url: string, name: string): string {
  if (!URL.canParse(url)) throw wrong()
  const beside = new URL(url)
  if (beside.protocol === 'sqs:') beside.pathname = ''
  else beside.pathname = beside.pathname.replace(/[^/]*$/, queueNameOf(name))
  return beside.href
}

/** SQS knows its queues by URLs without parameters. */
function queueUrlOf(url: string, hostname: string, path: string): Address {
  const [queueUrl = ''] = url.split('?')
  const queue = path.split('/').at(-1) ?? ''
  if (queue === '') throw wrong()
  const region = /^(?:sqs\.([a-z0-9-]+)|([a-z0-9-]+)\.queue)\.amazonaws\.com/.exec(hostname)
  const found = region?.[1] ?? region?.[2]
  return found === undefined ? { queueUrl, queue } : { queueUrl, queue, region: found }
}

/** Queues are called by letters, digits, - and _; this is how those end whose mailboxes are not. */
const hashed = /-x[0-9a-f]{24}(\.fifo)?$/
const fit = /^[A-Za-z0-9_-]{1,75}(\.fifo)?$/

/** The queue of a mailbox. A name that is fit stays as it is; any other ends in its hash, so that no two meet. */
export function queueNameOf(name: string): string {
  if (fit.test(name) && !hashed.test(name)) return name
  const [ending = ''] = /\.fifo$/.exec(name) ?? []
  const readable = name.slice(0, name.length - ending.length).replaceAll(/[^A-Za-z0-9_-]/g, '-')
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 24)
  return `${readable.slice(0, 48)}-x${hash}${ending}`
}

function wrong(what = 'is sqs://host:port/queue?region=… or the https:// URL of a queue') {
  return new RedriveError('INVALID_INPUT', `an SQS URL ${what}`)
}

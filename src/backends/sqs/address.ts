import { createHash } from 'node:crypto'
import { RedriveError } from '../../errors.ts'
import { unescaped, urlSettings } from '../url.ts'
import { retentionIn } from '../retention.ts'

/** The address of a queue. The SDK gets missing values from its own configuration. */
export interface Address {
  endpoint?: string
  region?: string
  /** The name of the queue. Default: derived from the name of the mailbox. */
  queue?: string
  /** If known, the queue need not be looked up or created. */
  queueUrl?: string
  retentionSeconds?: number
}

/**
 * Parses `sqs://host:port/queue?region=eu-west-1` for a private server,
 * `sqs:///queue?region=eu-west-1` for AWS, or the URL of a queue as AWS shows it. Without a queue,
 * its name is that of the mailbox.
 */
export function addressOf(url: string): Address {
  if (!URL.canParse(url)) throw wrong()
  const { protocol, host, hostname, pathname, searchParams, username } = new URL(url)
  if (username !== '')
    throw wrong('must not contain secrets: the SDK reads them from its own configuration')
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

/** The URL of another mailbox of the same server and account. */
export function urlBeside(url: string, name: string): string {
  if (!URL.canParse(url)) throw wrong()
  const beside = new URL(url)
  if (beside.protocol === 'sqs:') beside.pathname = ''
  else beside.pathname = beside.pathname.replace(/[^/]*$/, queueNameOf(name))
  return beside.href
}

/** SQS identifies queues by URLs without parameters. */
function queueUrlOf(url: string, hostname: string, path: string): Address {
  const [queueUrl = ''] = url.split('?')
  const queue = path.split('/').at(-1) ?? ''
  if (queue === '') throw wrong()
  const region = /^(?:sqs\.([a-z0-9-]+)|([a-z0-9-]+)\.queue)\.amazonaws\.com/.exec(hostname)
  const found = region?.[1] ?? region?.[2]
  return found === undefined ? { queueUrl, queue } : { queueUrl, queue, region: found }
}

/**
 * Queue names have letters, digits, - and _ only. Names of other mailboxes end in a hash, as here.
 */
const hashed = /-x[0-9a-f]{24}(\.fifo)?$/
const fit = /^[A-Za-z0-9_-]{1,75}(\.fifo)?$/

/**
 * The queue name of a mailbox. A valid name is unchanged; any other name ends in its hash, so that
 * no two are equal.
 */
export function queueNameOf(name: string): string {
  if (fit.test(name) && !hashed.test(name)) return name
  const [ending = ''] = /\.fifo$/.exec(name) ?? []
  const readable = name.slice(0, name.length - ending.length).replaceAll(/[^A-Za-z0-9_-]/g, '-')
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 24)
  return `${readable.slice(0, 48)}-x${hash}${ending}`
}

function wrong(what = 'must be sqs://host:port/queue?region=… or the https:// URL of a queue') {
  return new RedriveError('INVALID_INPUT', `an SQS URL ${what}`)
}

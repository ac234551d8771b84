import { RedriveError } from '../../errors.ts'
import type { Client } from '../../api/client.ts'
import { terminal } from '../terminal.ts'

/** Options that name a store or a server. */
export interface TargetOptions {
  store?: string
  /** URL of a server, instead of a store. */
  server?: string
  token?: string
}

/** A server instead of a store. */
export interface Server {
  url: string
  client: Client
}

const isServerUrl = (url: string): boolean => /^https?:/i.test(url)

/** The server of --server, or of a --store or REDRIVE_STORE that is the URL of a server. */
function serverUrlOf({ server, store }: TargetOptions): string | undefined {
  if (server === undefined) {
    const given = store ?? terminal.env['REDRIVE_STORE'] ?? ''
    return isServerUrl(given) ? checkUrl(given) : undefined
  }
  if (store !== undefined)
    throw new RedriveError('INVALID_INPUT', '--server and --store are both given: omit one of them')
  if (!isServerUrl(server))
    throw new RedriveError(
      'INVALID_INPUT',
      `--server must be a URL such as http://127.0.0.1:7400, got "${server}"`,
    )
  return checkUrl(server)
}

function checkUrl(url: string): string {
  if (!URL.canParse(url))
    throw new RedriveError(
      'INVALID_INPUT',
      `"${url}" is not the URL of a server: use one such as http://127.0.0.1:7400`,
    )
  const { username, password } = new URL(url)
  if (username !== '' || password !== '')
    throw new RedriveError(
      'INVALID_INPUT',
      'the URL of a server has no user and no password: give a token with REDRIVE_TOKEN',
    )
  return url.replace(/\/+$/, '')
}

/** Rejects a server, for a command that needs the store itself. */
export function refuseServer(options: TargetOptions, command: string): void {
  const url = serverUrlOf(options)
  if (url === undefined) return
  throw new RedriveError(
    'INVALID_INPUT',
    `${command} needs the store itself and cannot use the server ${url}: run it where the store can be reached, with --store`,
  )
}

/** Rejects --by, which a server ignores: the name of a person is that of the token. */
export function refuseName({ by }: { by?: string }): void {
  if (by === undefined) return
  throw new RedriveError(
    'INVALID_INPUT',
    '--by has no effect on a server, which knows you by your token: omit --by',
  )
}

/** The server that the options name. Undefined: they name a store. */
export async function findServer(options: TargetOptions): Promise<Server | undefined> {
  const url = serverUrlOf(options)
  if (url === undefined) return undefined
  const { createClient } = await import('../../api/client.ts')
  const token = options.token ?? terminal.env['REDRIVE_TOKEN']
  const send: typeof fetch = (input, init) =>
    fetch(input, init).catch((error: unknown) => {
      throw init?.signal?.aborted ? error : unreachable(url, error)
    })
  return { url, client: createClient({ url, fetch: send, ...(token ? { token } : {}) }) }
}

function unreachable(url: string, error: unknown): RedriveError {
  const { cause, message } = error as Error & { cause?: { code?: string; message?: string } }
  const why = cause?.code ?? cause?.message ?? message
  return new RedriveError(
    'SERVER_UNREACHABLE',
    `the server ${url} cannot be reached (${why}): start it with redrive serve, or correct its URL`,
    { cause: error },
  )
}

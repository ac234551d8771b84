import { RedriveError } from '../../errors.ts'
import { isTlsRefusal, unreachable } from '../unreachable.ts'
import type { Tenant } from './tenant.ts'

/** The cause and the fix, by the first word of an error of the server. */
const adviceFor = ({ noun, page }: Tenant): Record<string, string> => ({
  OOM: 'the server has no memory left (maxmemory): free memory or raise the limit; nothing was written',
  MISCONF: 'the server cannot write to its disk: see its log; nothing was written',
  READONLY: 'this server is a replica and cannot write: name the master',
  LOADING: 'the server is still loading its data: try again',
  BUSY: 'a script is blocking the server: try again',
  MASTERDOWN: 'the server has lost its master: try again',
  CLUSTERDOWN: 'the cluster is down: try again once its slots are served',
  TRYAGAIN: `the ${noun}'s slot is being moved to another node: try again when that is done`,
  ASK: `the ${noun}'s slot is being moved to another node: try again when that is done`,
  MOVED: `the ${noun}'s slot has moved to another node: try again`,
  NOREPLICAS: 'the server has too few replicas to accept writes (min-replicas-to-write)',
  NOAUTH: 'the server requires a password: add it to the URL',
  WRONGPASS: 'the server does not accept this user and password: correct the URL',
  AUTH: 'the server has no password: remove it from the URL',
  DB: 'the server has no database of this number: correct the URL',
  SELECT: 'a cluster has one database only: remove its number from the URL',
  DENIED: 'the server accepts only local connections (protected-mode): set a password there',
  NOPERM: `the user lacks permissions that a ${noun} needs: see ${page}`,
})

/** Translates an error of the client. No other function knows its errors. */
export function toRedriveError(error: unknown, place: string, tenant: Tenant): RedriveError {
  if (error instanceof RedriveError) return error
  const { message: text, name } = errorLike(error)
  const message = text || name
  const advice = adviceFor(tenant)
  const word = /^(?:ERR )?([A-Z]+)\b/.exec(message)?.[1] ?? ''
  const known = Object.hasOwn(advice, word) ? advice[word] : unreachable(error)
  const what = known ?? 'the server failed'
  return new RedriveError(tenant.unavailable, `redis ${place}: ${what} (${message})`, {
    cause: error,
  })
}

/** The message and name of an error; some errors of the client have only nested ones. */
function errorLike(error: unknown): { message: string; name: string } {
  if (error instanceof AggregateError && error.message === '')
    return errorLike(error.errors.at(-1) ?? new Error('no reason given'))
  if (error instanceof Error) return { message: error.message, name: error.name }
  return { message: String(error), name: 'Error' }
}

const startsWith = (error: unknown, word: string): boolean =>
  error instanceof Error && error.message.startsWith(word)

export const isNoScript = (error: unknown): boolean => startsWith(error, 'NOSCRIPT')
export const isLoading = (error: unknown): boolean => startsWith(error, 'LOADING')
export const isMoved = (error: unknown): boolean => startsWith(error, 'MOVED ')
const refusals = [
  'WRONGPASS',
  'NOAUTH',
  'NOPERM',
  'DENIED',
  'ERR AUTH',
  'ERR DB index',
  'ERR SELECT',
]

/**
 * Whether the server rejects this user, password or database, or has another certificate: trying
 * again does not help.
 */
export const isRefusal = (error: unknown): boolean =>
  refusals.some((words) => startsWith(error, words)) || isTlsRefusal(error)

export const isForbidden = (error: unknown): boolean =>
  startsWith(error, 'NOPERM') || startsWith(error, 'ERR unknown command')

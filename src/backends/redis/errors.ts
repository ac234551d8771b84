import { RedriveError } from '../../errors.ts'
import { isTlsRefusal, unreachable } from '../unreachable.ts'
import type { Tenant } from './tenant.ts'

/** What the first word of a server's refusal means for whoever reads it. */
const adviceTo = ({ noun, page }: Tenant): Record<string, string> => ({
  OOM: 'the server has no memory left (maxmemory): free some or raise it; nothing of this was written',
  MISCONF: 'the server cannot write to its disk and refuses: look at its log; nothing was written',
  READONLY: 'this server is a replica and cannot write: name the master',
  LOADING: 'the server is still loading its data: try again',
  BUSY: 'a script keeps the server busy: try again',
  MASTERDOWN: 'the server has lost its master: try again',
  CLUSTERDOWN: 'the cluster is down: try again once its slots are served',
  TRYAGAIN: `the ${noun}'s slot is being moved to another node: try again when that is done`,
  ASK: `the ${noun}'s slot is being moved to another node: try again when that is done`,
  MOVED: `the ${noun}'s slot has moved to another node: try again`,
  NOREPLICAS: 'the server has too few replicas to accept writes (min-replicas-to-write)',
  NOAUTH: 'the server wants a password: put it into the URL',
  WRONGPASS: 'the server does not accept this user and password: correct the URL',
  AUTH: 'the server has no password: remove it from the URL',
  DB: 'the server has no database of this number: correct the URL',
  SELECT: 'a cluster has one database only: remove its number from the URL',
  DENIED: 'the server lets in only its own machine (protected-mode): set a password there',
  NOPERM: `this user may not do what a ${noun} must: see ${page} for what it needs`,
})

/** Turns whatever the client rejected with into an error of ours. The one place that knows its errors. */
export function toRedriveError(error: unknown, place: string, tenant: Tenant): RedriveError {
  if (error instanceof RedriveError) return error
  const { message: text, name } = errorLike(error)
  const message = text || name
  const advice = adviceTo(tenant)
  const word = /^(?:ERR )?([A-Z]+)\b/.exec(message)?.[1] ?? ''
  const known = Object.hasOwn(advice, word) ? advice[word] : unreachable(error)
  const what = known ?? 'the server failed'
  return new RedriveError(tenant.unavailable, `redis ${place}: ${what} (${message})`, {
    cause: error,
  })
}

/** Some errors of the client have no message, and some are several. */
function errorLike(error: unknown): { message: string; name: string } {
  if (error instanceof AggregateError && error.message === '')
    return errorLike(error.errors.at(-1) ?? new Error('no reason given'))
  if (error instanceof Error) return { message: error.message, name: error.name }
  return { message: String(error), name: 'Error' }
}

const begins = (error: unknown, word: string): boolean =>
  error instanceof Error && error.message.startsWith(word)

export const isNoScript = (error: unknown): boolean => begins(error, 'NOSCRIPT')
export const isLoading = (error: unknown): boolean => begins(error, 'LOADING')
export const isMoved = (error: unknown): boolean => begins(error, 'MOVED ')
const unwelcome = [
  'WRONGPASS',
  'NOAUTH',
  'NOPERM',
  'DENIED',
  'ERR AUTH',
  'ERR DB index',
  'ERR SELECT',
]

/** The server refuses this user, password or database, or is not the one of its certificate, and trying again does not help. */
export const isUnwelcome = (error: unknown): boolean =>
  unwelcome.some((words) => begins(error, words)) || isTlsRefusal(error)

export const isForbidden = (error: unknown): boolean =>
  begins(error, 'NOPERM') || begins(error, 'ERR unknown command')

import { RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import { hasMethods, isList, isObject, read } from '../letter/reading.ts'
import type { Mailbox } from '../mailbox.ts'
import type { Listeners } from './events.ts'

export const listenerKeys = keysOf<Listeners>({ onEvent: true, hub: true })

/** Names that other systems use for options that several loops have. */
export const renamedReceiving = {
  visibility_timeout: 'visibilitySeconds',
  visibilityTimeout: 'visibilitySeconds',
  wait_time_seconds: 'waitSeconds',
}

/**
 * Rejects options that are not an object, or that have an unknown key. `thing` is their owner, as
 * in "MainLoop".
 */
export function checkOptions(
  thing: string,
  options: unknown,
  known: readonly string[],
  renamed: Readonly<Record<string, string>> = {},
): void {
  checkKeys(`${thing} options`, options, known, { code: 'INVALID_CONFIG', renamed })
  checkListeners(thing, options as Listeners)
}

function checkListeners(thing: string, { onEvent, hub }: Listeners): void {
  optionalFunction(thing, 'onEvent', onEvent)
  if (hub !== undefined && !hasMethods(hub, 'emit'))
    throw wrongOption(thing, 'hub', 'an object with the method emit', hub)
}

/** Rejects an option that is missing or not a function. `example` shows what to give. */
export function requireFunction(
  thing: string,
  option: string,
  value: unknown,
  example: string,
): void {
  if (typeof value !== 'function') throw wrongOption(thing, option, `a function: ${example}`, value)
}

export function optionalFunction(thing: string, option: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function')
    throw wrongOption(thing, option, 'a function', value)
}

export function optionalBoolean(thing: string, option: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'boolean')
    throw wrongOption(thing, option, 'true or false', value)
}

/** Rejects an option that is missing or not a mailbox. */
export function requireMailbox(thing: string, option: string, value: unknown): void {
  if (!isMailbox(value))
    throw wrongOption(thing, option, 'a mailbox: const mailbox = await openMailbox(url)', value)
}

export function isMailbox(value: unknown): value is Mailbox {
  return hasMethods(value, 'send', 'receive') && isObject(read(value, 'powers'))
}

/**
 * An error that names the option and what it must be. The value itself is left out: a URL may
 * contain a password.
 */
export function wrongOption(
  thing: string,
  option: string,
  expected: string,
  value: unknown,
): RedriveError {
  const problem =
    value === undefined
      ? `${thing} needs the option ${option}, ${expected}`
      : `${thing} option ${option} must be ${expected}; got ${describeValue(value)}`
  return new RedriveError('INVALID_CONFIG', problem)
}

/** The kind of a value, for an error message. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (isList(value)) return 'an array'
  if (hasMethods(value, 'then')) return 'a promise (await it)'
  if (typeof value === 'function') return named('a function', value.name)
  if (typeof value === 'object') return describeKeys(value)
  return `a ${typeof value}`
}

function named(kind: string, name: unknown): string {
  return typeof name === 'string' && name !== '' ? `${kind} (${name.slice(0, 80)})` : kind
}

function describeKeys(value: object): string {
  try {
    const keys = Object.keys(value).slice(0, 5).join(', ')
    return keys === '' ? 'an object without keys' : `an object with the keys ${keys.slice(0, 200)}`
  } catch {
    return 'an object that cannot be read'
  }
}

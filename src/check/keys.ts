import { RedriveError, type ErrorCode } from '../errors.ts'
import { nearest } from './nearest.ts'

/**
 * The keys of an object type as a list. TypeScript rejects a call that forgets one or names one
 * that is not there.
 */
export function keysOf<T extends object>(keys: Record<keyof T, true>): readonly string[] {
  return Object.keys(keys)
}

export interface KeyCheck {
  /** Other names that people use for a known key, such as those of an older system. */
  renamed?: Readonly<Record<string, string>>
  /** Default: INVALID_INPUT. */
  code?: ErrorCode
}

/**
 * Rejects a value that is not an object, or that has a key outside of `known`; the error names the
 * key and the known key nearest to it. `thing` says what the object is, as in "letter filter". A
 * key whose value is undefined counts as absent.
 */
export function checkKeys(
  thing: string,
  value: unknown,
  known: readonly string[],
  { renamed = {}, code = 'INVALID_INPUT' }: KeyCheck = {},
): void {
  checkObject(thing, value, code)
  const fields = value as Record<string, unknown>
  const key = Object.keys(fields).find(
    (name) => !known.includes(name) && fields[name] !== undefined,
  )
  if (key === undefined) return
  throw new RedriveError(
    code,
    `unknown key ${quote(key)} in ${thing}: ${hintFor(key, known, renamed)}`,
  )
}

/** Rejects a value that is not an object. */
export function checkObject(
  thing: string,
  value: unknown,
  code: ErrorCode = 'INVALID_INPUT',
): asserts value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new RedriveError(code, `${thing} must be an object, got ${describeType(value)}`)
}

/**
 * Rejects a value, or a member of a list of values, that is not one of `allowed`. `thing` names it,
 * as in "state".
 */
export function checkOneOf(
  thing: string,
  value: unknown,
  allowed: readonly string[],
  { renamed = {}, code = 'INVALID_INPUT' }: KeyCheck = {},
): void {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  for (const one of values) {
    if (typeof one !== 'string')
      throw new RedriveError(code, `${thing} must be a string, got ${describeType(one)}`)
    if (!allowed.includes(one))
      throw new RedriveError(
        code,
        `unknown ${thing} ${quote(one)}: ${hintFor(one, allowed, renamed)}`,
      )
  }
}

/**
 * Rejects two names in a map such as settings by queue, because the schema of a map mishandles
 * them: it skips `__proto__`, and does not accept a map with a function under `constructor`.
 */
export function checkNames(thing: string, map: object | undefined): void {
  if (typeof map !== 'object' || map === null) return
  const isFunction =
    typeof Object.getOwnPropertyDescriptor(map, 'constructor')?.value === 'function'
  const name = Object.hasOwn(map, '__proto__')
    ? '__proto__'
    : isFunction
      ? 'constructor'
      : undefined
  if (name !== undefined)
    throw new RedriveError(
      'INVALID_CONFIG',
      `${thing}: "${name}" is not allowed as a name, use another one`,
    )
}

/** "did you mean …?" when a known name is close, otherwise the list of known names. */
export function hintFor(
  name: string,
  known: readonly string[],
  renamed: Readonly<Record<string, string>> = {},
): string {
  const near = Object.hasOwn(renamed, name) ? renamed[name] : nearest(name, known)
  return near === undefined ? `known: ${known.join(', ')}` : `did you mean ${quote(near)}?`
}

/** The type of a value that may be a secret, for an error message. */
export function describeType(value: unknown): string {
  return typeof value === 'object' ? describeValue(value) : typeof value
}

/** A name from outside, quoted and bounded, for an error message. */
export function quote(name: string): string {
  return JSON.stringify(name.slice(0, 80))
}

/**
 * A short description of a value for an error message: a scalar itself, an object by its class.
 */
export function describeValue(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'object' || value === null) return String(value)
  if (Array.isArray(value)) return 'an array'
  if (value instanceof Date && Number.isNaN(value.getTime())) return 'an invalid Date'
  const { constructor } = value
  const name = typeof constructor === 'function' ? constructor.name : 'Object'
  return name === 'Object' || name === '' ? 'an object' : `a ${name}`
}

export function withoutUndefined<T extends object>(
  fields: T,
): { [K in keyof T]: Exclude<T[K], undefined> } {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given) as { [K in keyof T]: Exclude<T[K], undefined> }
}

import { RedriveError } from '../errors.ts'

/**
 * A connection is either opened from a URL, or belongs to the application, which closes it. Rejects
 * both and neither.
 */
export function checkUrlOrClient(
  url: string | undefined,
  client: unknown,
  option: 'pool' | 'client',
): void {
  if ((url === undefined) !== (client === undefined)) return
  throw invalidConfig(
    `give exactly one of url and ${option}, got ${url === undefined ? 'neither' : 'both'}`,
  )
}

/**
 * Rejects an injected client that is not of the expected kind. `expected` names the kind and how to
 * create it.
 */
export function refuseClient(option: 'pool' | 'client', expected: string, client: unknown): never {
  throw invalidConfig(`${option} must be ${expected}, got ${describeKind(client)}`)
}

/** Whether the value is an object with all of these methods. */
export function hasMethods(value: unknown, ...names: string[]): boolean {
  const members = value as Record<string, unknown> | null | undefined
  return typeof value === 'object' && names.every((name) => typeof members?.[name] === 'function')
}

function describeKind(value: unknown): string {
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value
  const name = (value as { constructor?: { name?: unknown } }).constructor?.name
  return typeof name === 'string' && name !== '' && name !== 'Object' ? `a ${name}` : 'an object'
}

function invalidConfig(message: string): RedriveError {
  return new RedriveError('INVALID_CONFIG', message)
}

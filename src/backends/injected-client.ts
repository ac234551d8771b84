import { describeType } from '../check/keys.ts'
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
  throw invalidConfig(`${option} must be ${expected}, got ${describeType(client)}`)
}

function invalidConfig(message: string): RedriveError {
  return new RedriveError('INVALID_CONFIG', message)
}

import type { ConfigData } from './schema.ts'
import type { Secrets } from './secrets.ts'

type Given = NonNullable<ConfigData['server']>

/** How claims become a caller. */
export type ClaimMapping = Pick<NonNullable<Given['jwt']>, 'claims' | 'roles'>
export type JwtSettings = NonNullable<Given['jwt']>
export type OidcSettings = Omit<NonNullable<Given['oidc']>, 'clientSecret'> & {
  clientSecret: string
}

/** The settings of `redrive serve`, with secrets filled in. */
export type ServerSettings = Omit<Given, 'oidc'> & { oidc?: OidcSettings }

/** The settings of the server. Problems are added to those of `secrets`. */
export function serverOf(given: ConfigData['server'], secrets: Secrets): ServerSettings {
  const { oidc, ...rest } = given ?? {}
  if (!oidc) return rest
  if (rest.publicUrl === undefined)
    secrets.reject(
      ['server', 'oidc'],
      'needs server.publicUrl, the address that the identity provider sends people back to',
    )
  const clientSecret = secrets.reveal(oidc.clientSecret, ['server', 'oidc', 'clientSecret'])
  return { ...rest, oidc: { ...oidc, clientSecret } }
}

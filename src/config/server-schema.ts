import { isIP } from 'node:net'
import { z } from 'zod'
import { isLoopback } from '../check/loopback.ts'
import { positiveMs } from '../options/schema.ts'
import { secret } from './secret-schema.ts'

/** Signatures with a public key. A shared key, or none, would let others make tokens. */
export const signatureAlgorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const

const text = z.string().min(1).max(500)

/** Plain http is allowed on this machine only: others could read and change what is sent. */
function isSafeUrl(given: string): boolean {
  if (!URL.canParse(given)) return false
  const { protocol, hostname, username } = new URL(given)
  const isSafe = protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
  return isSafe && username === ''
}

const safeUrl = z
  .string()
  .min(1)
  .max(2000)
  .refine(isSafeUrl, { error: 'must begin with https:// (or http:// on a loopback address)' })

const origin = z
  .string()
  .refine(
    (given) =>
      URL.canParse(given) &&
      /^https?:$/.test(new URL(given).protocol) &&
      new URL(given).origin === given.replace(/\/$/, ''),
    { error: 'must be an address without a path, such as https://redrive.example.com' },
  )

function isAddressRange(given: string): boolean {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(given) ?? []
  const version = isIP(address)
  return version !== 0 && Number(bits ?? 0) <= (version === 4 ? 32 : 128)
}

const addressRange = z.string().refine(isAddressRange, {
  error: 'must be an IP address or a range of addresses, such as 10.0.0.0/8',
})

const claim = (description: string) => text.optional().describe(description)
const values = z.array(text).min(1).max(100).optional()

/** How the claims of an identity provider become a caller. */
const mappingShape = {
  claims: z
    .strictObject({
      name: claim(
        'Claim with the name of the caller. Default: sub, or a verified email with oidc.',
      ),
      role: claim('Claim with one or several roles, such as groups. Default: role.'),
      queues: claim('Claim with the queues of the caller, or "*". Default: all queues.'),
      tenants: claim('Claim with the tenants of the caller, or "*". Default: all tenants.'),
    })
    .optional()
    .describe('Names of claims. Dots lead to inner claims, such as realm_access.roles.'),
  roles: z
    .strictObject({
      viewer: values.describe('Values of the role claim that make a viewer.'),
      operator: values.describe('Values of the role claim that make an operator.'),
      admin: values.describe('Values of the role claim that make an admin.'),
    })
    .optional()
    .describe('Values of the role claim for each role. Default: viewer, operator and admin.'),
}

const jwt = z.strictObject({
  issuer: safeUrl.describe('Issuer of the tokens, their iss claim.'),
  audience: z
    .union([text, z.array(text).min(1).max(20)])
    .describe('Audience of the tokens, one of their aud claims.'),
  jwksUrl: safeUrl
    .optional()
    .describe('URL of the keys. Default: what the discovery document of the issuer says.'),
  algorithms: z
    .array(z.enum(signatureAlgorithms))
    .min(1)
    .optional()
    .describe('Allowed signature algorithms, such as RS256. Default: all with a public key.'),
  clockToleranceMs: z
    .int()
    .min(0)
    .max(300_000)
    .optional()
    .describe('Difference between the clocks of issuer and server. Default: 5 s.'),
  ...mappingShape,
})

const oidc = z.strictObject({
  issuer: safeUrl.describe('Address of the identity provider.'),
  clientId: text.describe('Id of this server at the provider.'),
  clientSecret: secret.meta({
    description: 'Secret of this server at the provider: { env: NAME } or { file: PATH }.',
    writeOnly: true,
  }),
  scopes: z
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/))
    .min(1)
    .max(50)
    .optional()
    .describe('Scopes to ask for besides openid. Default: profile and email.'),
  emailDomains: z
    .array(z.string().regex(/^[a-z0-9.-]{1,253}$/))
    .min(1)
    .max(100)
    .optional()
    .describe('Only people with a verified email address in one of these domains.'),
  ...mappingShape,
})

/** What `redrive serve` reads. */
export const serverSchema = z.strictObject({
  host: z.string().min(1).max(255).optional().describe('Address to listen on. Default: 127.0.0.1.'),
  port: z
    .int()
    .min(0)
    .max(65_535)
    .optional()
    .describe('Port to listen on, 0 for any free one. Default: 7400.'),
  publicUrl: origin
    .optional()
    .describe('Address of the server for browsers, such as https://redrive.example.com.'),
  trustedProxies: z
    .array(addressRange)
    .min(1)
    .max(100)
    .optional()
    .describe('Reverse proxies whose X-Forwarded headers are true: addresses or ranges.'),
  session: z
    .strictObject({
      idleMs: positiveMs
        .optional()
        .describe('A session ends this long after its last request. Default: 12 h.'),
      maxMs: positiveMs
        .optional()
        .describe('A session ends this long after the sign-in. Default: 7 d.'),
    })
    .optional()
    .describe('How long people stay signed in.'),
  rateLimit: z
    .strictObject({
      perSecond: z.number().positive().max(1_000_000).describe('Average requests per second.'),
      burst: z.int().min(1).max(1_000_000).describe('Requests at once after a quiet time.'),
    })
    .optional()
    .describe(
      'Limit for each caller, without captures. Default: 200 and 400 for people, none for tokens.',
    ),
  maxRequests: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe('Requests in flight, above which others get status 503. Default: 1000.'),
  jwt: jwt.optional().describe('Accepts the tokens (JWT) of an issuer.'),
  oidc: oidc.optional().describe('Lets people sign in at an identity provider.'),
})

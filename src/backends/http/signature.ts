import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * How much the time of a signature may differ from that of the receiver, so that an old request
 * cannot be replayed.
 */
const defaultToleranceMs = 5 * 60_000

/** Maximum number of signatures that are read: enough for a rotation of secrets. */
const maxSignatures = 8

/**
 * Signs a body for a receiver with the same secret: `t=<unix seconds>,v1=<hex>`, where the hex is
 * HMAC-SHA-256 of the seconds, a dot and the body. The body is signed as the bytes that are sent.
 */
export function sign(body: string | Uint8Array, secret: string, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000)
  return `t=${seconds},v1=${digest(seconds, body, secret).toString('hex')}`
}

/**
 * Whether a signature was made for this exact body with this secret, within the tolerance of now.
 * Default tolerance: 5 minutes. Returns false for a missing or malformed header, and never throws.
 * Takes the same time for a wrong signature as for a right one.
 */
export function verifySignature(
  header: string | string[] | undefined,
  body: string | Uint8Array,
  secret: string,
  nowMs: number,
  toleranceMs = defaultToleranceMs,
): boolean {
  const parts = String(header ?? '')
    .split(',')
    .map((part) => part.trim())
  const seconds = parts.map((part) => /^t=(\d{1,12})$/.exec(part)?.[1]).find(Boolean)
  if (seconds === undefined || secret === '') return false
  // Written this way round, so that NaN as a time or tolerance rejects everything.
  if (!(Math.abs(nowMs - Number(seconds) * 1000) <= toleranceMs)) return false
  const expected = digest(Number(seconds), body, secret)
  return parts
    .flatMap((part) => /^v1=([0-9a-f]{64})$/i.exec(part)?.[1] ?? [])
    .slice(0, maxSignatures)
    .reduce((found, hex) => timingSafeEqual(Buffer.from(hex, 'hex'), expected) || found, false)
}

function digest(seconds: number, body: string | Uint8Array, secret: string): Buffer {
  return createHmac('sha256', secret).update(`${seconds}.`).update(body).digest()
}

/** The key of a Standard Webhooks secret, or undefined if the secret is not valid. */
export function parseWebhookSecret(secret: string): Buffer | undefined {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]{32,86}={0,2})$/.exec(secret) ?? []
  if (encoded === undefined) return undefined
  const key = Buffer.from(encoded, 'base64')
  return key.length >= 24 && key.length <= 64 ? key : undefined
}

/**
 * The signatures of a request by Standard Webhooks, one for each key: HMAC-SHA-256 of the id, the
 * time in seconds and the body, joined by dots.
 */
export function signWebhook(
  id: string,
  seconds: number,
  body: string,
  keys: readonly Uint8Array[],
): string {
  return keys
    .map((key) => createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64'))
    .map((signature) => `v1,${signature}`)
    .join(' ')
}

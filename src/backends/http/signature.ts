import { createHmac, timingSafeEqual } from 'node:crypto'

/** How far the time in a signature may be from the receiver's, so that an old request cannot be sent again. */
const usualToleranceMs = 5 * 60_000

/** More signatures than a rotation of secrets needs are not read. */
const maxSignatures = 8

/**
 * Signs a body for whoever shares the secret: `t=<unix seconds>,v1=<hex>`, where the hex is HMAC-SHA-256 of the
 * seconds, a dot and the body. The body is signed as the bytes that are sent.
 */
export function sign(body: string | Uint8Array, secret: string, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000)
  return `t=${seconds},v1=${digest(seconds, body, secret).toString('hex')}`
}

/**
 * Whether a signature was made for this very body with this secret, within the tolerance of now (5 minutes unless
 * said). A header that is missing or malformed is false; nothing is thrown. It takes as long for a wrong one as for a right one.
 */
export function verifySignature(
  header: string | string[] | undefined,
  body: string | Uint8Array,
  secret: string,
  nowMs: number,
  toleranceMs = usualToleranceMs,
): boolean {
  const parts = String(header ?? '')
    .split(',')
    .map((part) => part.trim())
  const seconds = parts.map((part) => /^t=(\d{1,12})$/.exec(part)?.[1]).find(Boolean)
  if (seconds === undefined || secret === '') return false
  // Asked this way round, so that a time or a tolerance that is no number lets nothing through.
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

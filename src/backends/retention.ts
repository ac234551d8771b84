import { RedriveError } from '../errors.ts'

/** A century: timestamps stay within what every broker stores exactly. */
const maxRetentionSeconds = 3_155_760_000

/** The retention in milliseconds, 0 for none. INVALID_CONFIG when it is out of range. */
export function retentionMsOf(retentionSeconds = 0): number {
  const isNumber = typeof retentionSeconds === 'number'
  if (isNumber && retentionSeconds >= 0 && retentionSeconds <= maxRetentionSeconds)
    return Math.ceil(retentionSeconds * 1000)
  throw new RedriveError(
    'INVALID_CONFIG',
    `retentionSeconds must be from 0 (store forever) to ${maxRetentionSeconds} (a century), got ${String(retentionSeconds).slice(0, 40)}`,
  )
}

/** Reads the retention from the parameters of a URL. */
export function retentionIn({ retentionSeconds: given }: { retentionSeconds?: string }): {
  retentionSeconds?: number
} {
  return given === undefined ? {} : { retentionSeconds: given === '' ? Number.NaN : Number(given) }
}

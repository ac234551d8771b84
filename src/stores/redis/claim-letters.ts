import { checkLease } from '../lease.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Claim, ClaimRequest, LeaseRef } from '../../store.ts'
import { toText, type Argument, type Reply } from '../../backends/redis/connection.ts'
import { decodeLetter } from '../rows/decode.ts'
import { createBatcher, sendInChunks } from './chunks.ts'
import { numberText, type StoreContext } from './context.ts'
import { loadLetter, type Parts } from './decode.ts'
import { scripts } from './scripts.ts'

/** Limits of one claim, in letters and payload bytes, to bound memory. */
const maxClaimLetters = 1000
const maxClaimBytes = 64 * 2 ** 20

const maxima = [String(maxClaimLetters), String(maxClaimBytes)]

export async function claimLetters(context: StoreContext, request: ClaimRequest): Promise<Claim> {
  checkLease(request.leaseMs)
  const { worker, leaseMs, limit, queues, except } = request
  const lists = [queues, except].map((names) =>
    names ? JSON.stringify(names.map((name) => name.toWellFormed())) : '',
  )
  const args = [context.now(), worker, numberText(leaseMs), numberText(limit), ...lists, ...maxima]
  const reply = await context.runMove(scripts.claim, args)
  const [nextMs, lost, found] = reply as [Buffer | null, number, Reply[]]
  context.lostWrites.addStrays(lost)
  const letters: DeadLetter[] = []
  for (let at = 0; at < found.length; at += 4)
    letters.push(decodeLetter(loadLetter(toText(found[at]), found.slice(at + 1, at + 4) as Parts)))
  if (nextMs === null || letters.length >= limit) return { letters }
  return { letters, nextDueAt: toTimestamp(Number(toText(nextMs))) }
}

export type Renew = (leases: readonly LeaseRef[], leaseMs: number) => Promise<boolean[]>

export function createRenewer(context: StoreContext): Renew {
  const renewing = createBatcher<Argument[], boolean>(async (requests) => {
    const args = [context.now(), ...requests.flat()]
    const replies = (await context.connection.run(scripts.renew, args)) as Reply[]
    return replies.map((reply) => reply === 1)
  })
  return async (leases, leaseMs) => {
    checkLease(leaseMs)
    return sendInChunks(leases, (some, cost) =>
      renewing.call(
        some.map((lease) => [numberText(leaseMs), lease.id, leaseGuard(lease)]),
        cost,
      ),
    )
  }
}

/** The guard of a lease in scripts. */
export function leaseGuard({ epoch, worker }: Omit<LeaseRef, 'id'>): string {
  return worker === undefined ? `e${epoch}` : `e${epoch}=${worker}`
}

import { Batcher } from '../../backends/batcher.ts'
import { checkLease } from '../lease.ts'
import { unpack } from '../rows/unpack.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { Change } from '../../letter/moves.ts'
import { toTimestamp } from '../../letter/time.ts'
import { toText, type Argument, type Reply } from '../../backends/redis/connection.ts'
import type { ApplyResult, Claim, ClaimRequest, LeaseRef } from '../../store.ts'
import { sendInChunks, maxScriptItems } from './chunks.ts'
import { costOf, type StoreContext } from './context.ts'
import { keptOf, type Fields } from './form.ts'
import { scripts } from './scripts.ts'
import { maxInFlight, splitReplies } from './batches.ts'
import { appliedOf, applyArguments, renewArguments, numberText } from './script-arguments.ts'

/** Limits of one claim, in letters and payload bytes, to bound memory. */
const maxClaimLetters = 1000
const maxClaimBytes = 64 * 2 ** 20

const enough = [String(maxClaimLetters), String(maxClaimBytes)]

const limits = { maxInFlight, maxBatchCost: maxScriptItems }

export async function claimLetters(context: StoreContext, request: ClaimRequest): Promise<Claim> {
  checkLease(request.leaseMs)
  const { worker, leaseMs, queues, except } = request
  const args = [context.now(), worker, numberText(leaseMs), numberText(request.limit)]
  const lists = [queues, except].map((names) =>
    names ? JSON.stringify(names.map(wellFormed)) : '',
  )
  const reply = await context.runMove(scripts.claim, [...args, ...lists, ...enough])
  const [nextMs, lost, found] = reply as [Buffer | null, number, (Buffer | Fields)[]]
  context.lostWrites.addStrays(lost)
  const letters: DeadLetter[] = []
  for (let at = 0; at < found.length; at += 2)
    letters.push(unpack(keptOf(toText(found[at]), found[at + 1] as Fields)))
  if (nextMs === null || letters.length >= request.limit) return { letters }
  return { letters, nextDueAt: toTimestamp(Number(toText(nextMs))) }
}

export type Renew = (leases: readonly LeaseRef[], leaseMs: number) => Promise<boolean[]>

export function createRenewer(context: StoreContext): Renew {
  const renewing = new Batcher<Argument[][], boolean[]>(limits, async (requests) => {
    const replies = await context.connection.run(scripts.renew, [
      context.now(),
      ...requests.flat(2),
    ])
    return splitReplies(requests, replies as Reply[], (reply) => reply === 1)
  })
  return async (leases, leaseMs) => {
    checkLease(leaseMs)
    return sendInChunks(leases, maxScriptItems, (some) =>
      renewing.call(
        some.map((lease) => renewArguments(lease, leaseMs)),
        some.length,
      ),
    )
  }
}

export type Apply = (changes: readonly Change[]) => Promise<ApplyResult[]>

export function createApplier(context: StoreContext): Apply {
  const applying = new Batcher<Argument[][], ApplyResult[]>(limits, async (requests) =>
    splitReplies(requests, await context.runMove(scripts.apply, requests.flat(2)), appliedOf),
  )
  return (changes) =>
    sendInChunks(
      changes,
      maxScriptItems,
      (some) => {
        const cost = some.reduce((sum, change) => sum + changeCost(change), 0)
        return applying.call(some.map(applyArguments), cost)
      },
      changeCost,
    )
}

const changeCost = ({ set }: Change): number => costOf(set.payload?.bytes.length ?? 0)

const wellFormed = (name: string): string => name.toWellFormed()

import { Batcher } from '../../backends/batcher.ts'
import { checkLease } from '../lease.ts'
import { unpack } from '../rows/unpack.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { Change } from '../../letter/moves.ts'
import { toTimestamp } from '../../letter/time.ts'
import { toText, type Argument, type Reply } from '../../backends/redis/connection.ts'
import type { ApplyResult, Claim, ClaimRequest, LeaseRef } from '../../store.ts'
import { inChunks, maxScriptItems } from './chunks.ts'
import { weightOf, type Desk } from './desk.ts'
import { keptOf, type Fields } from './form.ts'
import { scripts } from './scripts.ts'
import { maxInFlight, together } from './together.ts'
import { appliedOf, applyArguments, renewArguments, numberText } from './writing.ts'

/** One claim gives no more than this, and ends early past so many payload bytes, so that the memory does not fill up. */
const maxClaimLetters = 1000
const maxClaimBytes = 64 * 2 ** 20

const enough = [String(maxClaimLetters), String(maxClaimBytes)]

const limits = { maxInFlight, maxBatchCost: maxScriptItems }

export async function claimLetters(desk: Desk, request: ClaimRequest): Promise<Claim> {
  checkLease(request.leaseMs)
  const { worker, leaseMs, queues, except } = request
  const args = [desk.now(), worker, numberText(leaseMs), numberText(request.limit)]
  const lists = [queues, except].map((names) =>
    names ? JSON.stringify(names.map(wellFormed)) : '',
  )
  const reply = await desk.moving(scripts.claim, [...args, ...lists, ...enough])
  const [nextMs, lost, found] = reply as [Buffer | null, number, (Buffer | Fields)[]]
  desk.witness.strays(lost)
  const letters: DeadLetter[] = []
  for (let at = 0; at < found.length; at += 2)
    letters.push(unpack(keptOf(toText(found[at]), found[at + 1] as Fields)))
  if (nextMs === null || letters.length >= request.limit) return { letters }
  return { letters, nextDueAt: toTimestamp(Number(toText(nextMs))) }
}

export type Renew = (leases: readonly LeaseRef[], leaseMs: number) => Promise<boolean[]>

export function renewer(desk: Desk): Renew {
  const renewing = new Batcher<Argument[][], boolean[]>(limits, async (asks) => {
    const replies = await desk.connection.run(scripts.renew, [desk.now(), ...asks.flat(2)])
    return together(asks, replies as Reply[], (reply) => reply === 1)
  })
  return async (leases, leaseMs) => {
    checkLease(leaseMs)
    return inChunks(leases, maxScriptItems, (some) =>
      renewing.call(
        some.map((lease) => renewArguments(lease, leaseMs)),
        some.length,
      ),
    )
  }
}

export type Apply = (changes: readonly Change[]) => Promise<ApplyResult[]>

export function applier(desk: Desk): Apply {
  const applying = new Batcher<Argument[][], ApplyResult[]>(limits, async (asks) =>
    together(asks, await desk.moving(scripts.apply, asks.flat(2)), appliedOf),
  )
  return (changes) =>
    inChunks(
      changes,
      maxScriptItems,
      (some) => {
        const weight = some.reduce((sum, change) => sum + changeWeight(change), 0)
        return applying.call(some.map(applyArguments), weight)
      },
      changeWeight,
    )
}

const changeWeight = ({ set }: Change): number => weightOf(set.payload?.bytes.length ?? 0)

const wellFormed = (name: string): string => name.toWellFormed()

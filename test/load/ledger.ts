import { systemClock } from '../../src/clock/clock.ts'
import { connect } from '../../src/connect/store.ts'
import { states } from '../../src/letter/letter.ts'
import type { Store } from '../../src/store.ts'
import { pause } from '../crash/child.ts'

/** What clients sent, and what the server answered. */
export class Ledger {
  /** Ids of acknowledged letters, by the key of their request. */
  readonly acknowledged = new Map<string, string>()
  /** Keys of requests that ended without any response. */
  readonly unanswered = new Set<string>()
  /** Number of responses, by status. */
  readonly statuses = new Map<number, number>()
  /** Responses that must not happen. */
  readonly problems: string[] = []

  count(status: number): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
  }

  /** A repeated request must get the same letter. */
  acknowledge(key: string, id: string): void {
    const before = this.acknowledged.get(key)
    if (before !== undefined && before !== id)
      this.problems.push(`${key} was acknowledged as ${before}, then as ${id}`)
    this.acknowledged.set(key, id)
  }
}

export interface Comparison {
  letters: number
  /** Acknowledged letters that the store does not have. */
  lost: string[]
  /** Keys with more than one letter. */
  repeated: string[]
  /** Letters of requests without a response. */
  unansweredButStored: number
}

/** Letters may wait in the spool of the server until the store answers again. */
const drainMs = 30_000

/**
 * Compares the ledger with the store. Waits for letters that are not there yet, while the server
 * runs.
 */
export async function compareWithStore(
  storeUrl: string,
  ledger: Ledger,
  withinMs = drainMs,
): Promise<Comparison> {
  const store = await connect(storeUrl, systemClock)
  await store.open()
  try {
    const untilMs = performance.now() + withinMs
    for (;;) {
      const comparison = compare(await readIds(store), ledger)
      if (comparison.lost.length === 0 || performance.now() > untilMs) return comparison
      await pause(500)
    }
  } finally {
    await store.close()
  }
}

/** The ids of all letters, by the key of their request. */
async function readIds(store: Store): Promise<Map<string, string[]>> {
  const ids = new Map<string, string[]>()
  for (let cursor: string | undefined; ;) {
    const from = cursor === undefined ? {} : { cursor }
    const page = await store.find({ state: [...states], limit: 1000, ...from })
    for (const { id, metadata } of page.items) {
      const key = metadata['key'] as string
      ids.set(key, [...(ids.get(key) ?? []), id])
    }
    if (page.cursor === undefined) return ids
    cursor = page.cursor
  }
}

function compare(stored: Map<string, string[]>, ledger: Ledger): Comparison {
  const { acknowledged, unanswered } = ledger
  return {
    letters: [...stored.values()].reduce((sum, ids) => sum + ids.length, 0),
    lost: [...acknowledged]
      .filter(([key, id]) => !stored.get(key)?.includes(id))
      .map(([key, id]) => `${key} (${id})`),
    repeated: [...stored]
      .filter(([, ids]) => ids.length > 1)
      .map(([key, ids]) => `${key} (${ids.join(', ')})`),
    unansweredButStored: [...unanswered].filter((key) => stored.has(key)).length,
  }
}

import { flushCompileCache } from 'node:module'
import { systemClock } from '../../src/clock.ts'
import { connect } from '../../src/connect.ts'
import type { Store } from '../../src/store.ts'
import { planted, type BugName } from './bugs.ts'
import { openLedger, type Ledger } from './ledger.ts'

/** What a child is told when it is spawned, as JSON in its only argument. */
export interface ChildSettings {
  dir: string
  store: string
  name: string
  seed: number
  leaseMs: number
  bug?: BugName
  /** A producer that captures only what it is asked for. */
  onDemand?: boolean
  /** The name of the child that had this slot before. */
  previous?: string
}

/** Makes this process a child of the run: it ends with its parent. */
export function beChild(): { settings: ChildSettings; ledger: Ledger } {
  const settings = JSON.parse(process.argv[2] ?? '{}') as ChildSettings
  process.once('disconnect', () => process.exit(3))
  return { settings, ledger: openLedger(settings.dir, settings.name) }
}

/** The store of the run, with the planted bug if one is asked for. */
export async function storeFor({ store, bug }: ChildSettings): Promise<Store> {
  const connected = await connect(store, systemClock)
  return bug ? planted(bug, connected) : connected
}

/**
 * Says that the work begins, and how it ends when it is asked to. Leaves the compiled modules to those that come
 * later, whatever happens to this one.
 */
export function ready(ledger: Ledger, finish: () => Promise<void>): void {
  process.once('SIGTERM', () => void finish().then(() => process.exit(0)))
  ledger.write({ e: 'ready' })
  flushCompileCache()
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}

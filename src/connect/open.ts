import type { Clock } from '../clock/clock.ts'
import {
  connect,
  spoolPathOf,
  withEncryption,
  withMeasures,
  withSearch,
  withSpool,
} from './store.ts'
import type { KeyMethods } from '../stores/encrypted/encrypted.ts'
import { RedriveError } from '../errors.ts'
import type { ObserverHub } from '../observer.ts'
import type { Settings } from '../options/options.ts'
import type { Capacity, SpoolStatus, Store, StoreCall } from '../store.ts'

/** A store, the status of its spool if it has one, and what encryption adds. */
export type OpenedStore = Store & { spool?: () => Promise<SpoolStatus> } & Partial<KeyMethods>

/**
 * Opens a store with the parts that the options add: an index that follows it, a spool in front of
 * it, encryption.
 */
export async function openStore(
  store: string | Store,
  settings: Settings,
  clock: Clock,
  hub: ObserverHub,
): Promise<OpenedStore> {
  if (typeof store !== 'string' && typeof store?.open !== 'function')
    throw new RedriveError(
      'INVALID_INPUT',
      `store must be a URL such as sqlite:redrive.db, or a store of a driver, got ${store === null ? 'null' : typeof store}`,
    )
  const url = typeof store === 'string' ? store : undefined
  const driver = typeof store === 'string' ? await connect(store, clock) : store
  const onCall = settings.onStoreCall && reportErrorsOf(settings.onStoreCall, hub)
  // Below the index, the spool and the encryption: the calls of the database are measured.
  const kept = onCall ? await withMeasures(driver, { clock, onCall }) : driver
  const searched = settings.search ? await withSearch(kept, settings.search, clock) : kept
  const spooled = await openSpool(searched, url, settings, clock, hub)
  // Above the index and the spool: neither gets more than the store.
  const { encryption } = settings
  const opened = encryption ? await withEncryption(spooled, encryption) : spooled
  try {
    await opened.open()
    return opened
  } catch (error) {
    // Nothing else closes the store that was opened here.
    if (url !== undefined) await opened.close().catch(() => {})
    throw error
  }
}

/** The caller's function, which cannot break a call of the store: its errors are events. */
function reportErrorsOf(
  onStoreCall: (call: StoreCall) => void,
  hub: ObserverHub,
): (call: StoreCall) => void {
  return (call) => {
    try {
      onStoreCall(call)
    } catch (error) {
      hub.emit({ type: 'error', during: `onStoreCall of ${call.method}`, error })
    }
  }
}

export function capacityOf({ maxItems, overflow }: Settings): Capacity | undefined {
  return Number.isFinite(maxItems) ? { maxItems, overflow } : undefined
}

/**
 * Puts a spool in front of the store, if the options ask for one. The default folder needs a URL.
 */
async function openSpool(
  store: Store,
  url: string | undefined,
  settings: Settings,
  clock: Clock,
  hub: ObserverHub,
): Promise<OpenedStore> {
  const durable = store.powers.durable && url !== undefined
  const usual = durable || settings.spoolPath !== undefined ? 'spool' : 'fail'
  const mode = settings.onStoreDown ?? usual
  if (mode === 'fail') return store
  const path = settings.spoolPath ?? (durable ? spoolPathOf(url) : undefined)
  if (mode === 'spool' && path === undefined)
    throw new RedriveError(
      'INVALID_CONFIG',
      `option "onStoreDown" is 'spool': also set spoolPath, or give a durable store by URL`,
    )
  return withSpool(store, {
    maxBytes: settings.spoolMaxBytes,
    timeoutMs: settings.spoolAfterMs,
    capacity: capacityOf(settings),
    clock,
    emit: (event) => hub.emit(event),
    ...(mode === 'spool' && path !== undefined ? { path } : {}),
  })
}

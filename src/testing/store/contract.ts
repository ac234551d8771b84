import { addChecks } from './add.ts'
import { applyChecks } from './apply.ts'
import { bulkChecks } from './bulk.ts'
import { capacityChecks } from './capacity.ts'
import type { StoreCheck } from './check.ts'
import { claimChecks } from './claim.ts'
import { dedupeChecks } from './dedupe.ts'
import { dependencyChecks } from './dependencies.ts'
import { findChecks } from './find.ts'
import { keepChecks } from './keep.ts'
import { laneChecks } from './lanes.ts'
import { lifecycleChecks } from './lifecycle.ts'
import { payloadChecks } from './payloads.ts'
import { recordChecks } from './records.ts'
import { removeChecks } from './remove.ts'
import { renewChecks } from './renew.ts'
import { tallyChecks } from './tally.ts'
import { totalChecks } from './totals.ts'
import { watchChecks } from './watch.ts'

/**
 * The store contract as a list of checks for any test runner: create a bench for each check, skip
 * it if `needs` returns a reason, and await `run`.
 */
export const storeContract: readonly StoreCheck[] = [
  ...lifecycleChecks,
  ...addChecks,
  ...dedupeChecks,
  ...capacityChecks,
  ...findChecks,
  ...tallyChecks,
  ...totalChecks,
  ...claimChecks,
  ...laneChecks,
  ...dependencyChecks,
  ...renewChecks,
  ...applyChecks,
  ...bulkChecks,
  ...removeChecks,
  ...keepChecks,
  ...recordChecks,
  ...payloadChecks,
  ...watchChecks,
]

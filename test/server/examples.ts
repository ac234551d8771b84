import type { EndpointName, InputOf } from '../../src/api/endpoints.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import { callerOf } from '../../src/server/tokens.ts'
import { readAll, type TestServer } from './a-server.ts'

/** Every payload, error, header, metadata value and note of the examples contains it. */
export const secret = 'secret-4111-x'
export const queue = 'charge-card'
export const tenant = 'acme'

/** The input of a call that a caller with the permission and the scope may make. */
export interface Example<Input = object> {
  /** Creates what the call needs. */
  input: (server: TestServer) => Input | Promise<Input>
  /** The lines of the body, for endpoints that have some. */
  lines?: (server: TestServer) => Iterable<string> | Promise<Iterable<string>>
  /** Status of an allowed call, if it is not the one of the endpoint. */
  allowed?: number
  /** Status of a call with a scope that has no letters, if it is not the one of the bounds. */
  outside?: number
}

let number = 0

async function aLetter(
  { dlq }: TestServer,
  code = 'EGATEWAY',
): Promise<{ id: string; group: string }> {
  const cause = new Error(`the cause is ${secret}`)
  const error = Object.assign(new Error(`the gateway refused ${secret}`, { cause }), { code })
  const context = {
    tenant,
    metadata: { card: secret, nested: [{ card: secret }] },
    headers: { 'x-card': secret },
    dedupeKey: `${secret}-${(number += 1)}`,
    task: { id: 'charge', description: `charge ${secret}`, source: 'test' },
  }
  const { id } = await dlq.enqueue({ type: queue, payload: { card: secret } }, error, context)
  const { fingerprint } = await dlq.note(id, `a note about ${secret}`, 'mia')
  return { id, group: fingerprint }
}

const withId = { input: async (server: TestServer) => ({ id: (await aLetter(server)).id }) }

async function aGroup(server: TestServer): Promise<{ fingerprint: string }> {
  const { group } = await aLetter(server)
  await server.dlq.noteGroup(group, 'mia', `a note about ${secret}`)
  return { fingerprint: group }
}

/** A bulk action whose plan, sample and results contain the secret. */
async function anAction(server: TestServer): Promise<{ id: string }> {
  const { id: letterId } = await aLetter(server)
  const filter = { ids: [letterId], queue, tenant, text: secret }
  const { id } = await server.dlq.plan('retry', filter, { by: 'otto', reason: `about ${secret}` })
  return { id }
}

async function aRunningAction(server: TestServer): Promise<{ id: string }> {
  const { id } = await anAction(server)
  await server.dlq.run(id)
  return { id }
}

async function aToken({ tokens }: TestServer): Promise<{ id: string }> {
  const { info } = await tokens.create({ name: 'ci', createdBy: 'mia', permissions: ['admin'] })
  return { id: info.id }
}

const nothing = { input: () => ({}) }

/** A shared view of the caller of all examples, whose filter contains the secret. */
async function aView({ store, clock }: TestServer): Promise<{ id: string }> {
  const id = clock.id()
  const at = toTimestamp(clock.now())
  const filter = { queue, tenant, text: secret }
  const view = { name: 'mine', owner: 'mia', filter, shared: true, createdAt: at, changedAt: at }
  await store.records.put('view', id, view)
  return { id }
}

/** A shared view of somebody else. */
async function aSharedView(server: TestServer): Promise<Record<string, never>> {
  const { id } = await aView(server)
  const { value } = (await server.store.records.get('view', id))!
  await server.store.records.put('view', id, { ...(value as object), owner: 'otto' })
  return {}
}

const pausedQueue = {
  input: async ({ dlq }: TestServer) => {
    await dlq.pauseQueue(queue, 'mia', 'the gateway is down')
    return {}
  },
}

const failure = {
  queue,
  tenant,
  json: { card: secret },
  error: { message: `the gateway refused ${secret}` },
}

/** An example for every endpoint. */
export const examples: { [N in EndpointName]: Example<InputOf<N>> } = {
  listLetters: {
    input: async (server) => {
      await aLetter(server)
      return {}
    },
  },
  getLetter: withId,
  getPayloads: withId,
  diffPayloads: withId,
  getLineage: withId,
  retryLetter: withId,
  // The source is an operation, which has no address: the call passes all checks of the server.
  replayLetter: { ...withId, allowed: 422 },
  resolveLetter: withId,
  failLetter: {
    input: async (server) => ({ id: (await aLetter(server)).id, error: { message: secret } }),
  },
  parkLetter: withId,
  reviewLetter: {
    input: async (server) => {
      const { id } = await aLetter(server)
      await server.dlq.park(id, `park ${secret}`)
      return { id, decision: 'requeue' }
    },
  },
  noteLetter: { input: async (server) => ({ id: (await aLetter(server)).id, text: 'seen' }) },
  editLetter: {
    input: async (server) => ({ id: (await aLetter(server)).id, json: {}, reason: 'empty it' }),
  },
  undoEdit: {
    input: async (server) => {
      const { id } = await aLetter(server)
      await server.dlq.edit(id, { payload: {}, reason: `about ${secret}`, by: 'mia' })
      return { id }
    },
  },
  archiveLetter: withId,
  restoreLetter: {
    input: async (server) => {
      const { id } = await aLetter(server)
      await server.dlq.archive(id)
      return { id }
    },
  },
  removeLetter: withId,

  listViews: { input: aSharedView },
  createView: { input: () => ({ name: 'parked', filter: { state: 'parked' }, shared: true }) },
  replaceView: {
    input: async (server) => ({ ...(await aView(server)), name: 'parked', filter: {} }),
  },
  removeView: { input: aView },

  capture: { input: () => failure, outside: 403 },
  captureMany: { ...nothing, lines: () => [JSON.stringify(failure)], outside: 403 },
  exportLetters: {
    input: async (server) => {
      await aLetter(server)
      return {}
    },
  },
  importLetters: {
    ...nothing,
    lines: async (server) => {
      const { id } = await aLetter(server)
      return readAll(server.dlq.exportLetters({ ids: [id] }))
    },
  },

  eraseSubject: {
    input: async ({ dlq }) => {
      const context = { subject: 'user-17' }
      await dlq.enqueue({ type: queue, payload: { card: secret } }, new Error('no'), context)
      return { subject: 'user-17', reason: 'requested' }
    },
  },

  listGroups: {
    input: async (server) => {
      await aGroup(server)
      return {}
    },
  },
  getGroup: { input: aGroup },
  resolveGroup: { input: aGroup },
  ignoreGroup: { input: aGroup },
  reopenGroup: { input: aGroup },
  assignGroup: { input: async (server) => ({ ...(await aGroup(server)), assignee: 'bob' }) },
  noteGroup: { input: async (server) => ({ ...(await aGroup(server)), text: 'seen' }) },
  mergeGroups: {
    input: async (server) => {
      const { group } = await aLetter(server, `E${server.clock.id().slice(-12)}`)
      return { ...(await aGroup(server)), others: [group] }
    },
  },
  splitGroup: {
    input: async (server) => {
      const { group } = await aLetter(server, `E${server.clock.id().slice(-12)}`)
      await server.dlq.mergeGroups((await aGroup(server)).fingerprint, [group], 'mia')
      return { fingerprint: group }
    },
  },
  explainGroup: withId,

  planBulkAction: {
    input: async (server) => ({ action: 'retry', filter: { ids: [(await aLetter(server)).id] } }),
    // No letter of the scope matches the filter.
    outside: 400,
  },
  listBulkActions: {
    input: async (server) => {
      await anAction(server)
      return {}
    },
  },
  getBulkAction: { input: anAction },
  getBulkResults: { input: anAction },
  // The action is a retry, which cannot be undone: the call passes all checks of the server.
  planBulkUndo: { input: anAction, allowed: 400 },
  approveBulkAction: { input: anAction },
  runBulkAction: { input: anAction },
  pauseBulkAction: { input: aRunningAction },
  resumeBulkAction: {
    input: async (server) => {
      const { id } = await aRunningAction(server)
      await server.dlq.pause(id)
      return { id }
    },
  },
  cancelBulkAction: { input: anAction },

  listQueues: pausedQueue,
  getQueue: { input: () => ({ queue }) },
  getFlowControl: nothing,
  listPausedQueues: pausedQueue,
  pauseQueue: { input: () => ({ queue, reason: 'the gateway is down' }) },
  resumeQueue: { input: () => ({ queue }) },

  listAlerts: nothing,
  listAlertHistory: nothing,
  listAlertDeliveries: nothing,
  // No alert is raised and there is no target: the calls pass all checks of the server.
  acknowledgeAlert: { input: () => ({ name: 'nearly-full', note: 'known' }), allowed: 404 },
  testAlertTarget: { input: () => ({ target: 'team' }), allowed: 404 },
  getHealth: nothing,
  getMetrics: nothing,
  getMetricsSince: { input: async ({ dlq }) => ({ since: await dlq.metrics() }) },
  scrapeMetrics: nothing,
  getStatistics: nothing,
  getSettings: nothing,
  getSeries: { input: () => ({ metric: 'captured' }) },
  getPipeline: nothing,
  // The server of the examples has no pipeline: the call passes all checks of the server.
  replayNode: { input: () => ({ nodeId: 'parser' }), allowed: 404 },
  backtest: { input: () => ({ maxRetries: 1 }) },
  // A memory store has no full-text search: the call passes all checks of the server.
  searchLetters: { input: () => ({ words: 'gateway' }), allowed: 400 },

  listTokens: nothing,
  createToken: { input: () => ({ name: 'ci', permissions: ['admin'] }) },
  rotateToken: { input: aToken },
  revokeToken: { input: aToken },

  listAudit: nothing,
  verifyAudit: nothing,
  exportAudit: nothing,
  pruneAudit: {
    input: ({ clock }) => ({ before: toTimestamp(clock.now() - 2 * 86_400_000), reason: 'old' }),
  },

  // The server of the examples has no keys: the call passes all checks of the server.
  rotateKeys: { ...nothing, allowed: 400 },

  listWorkers: {
    input: async ({ store, clock }) => {
      const seenAt = new Date(clock.now()).toISOString()
      await store.records.put('worker', 'busy', { queues: [queue], seenAt, sweepMs: 5000 })
      return {}
    },
  },
  listMailboxes: {
    input: async ({ store, clock }) => {
      const seenAt = new Date(clock.now()).toISOString()
      const counts = { received: 1, processed: 0, failed: 1, dead: 0 }
      const loop = { name: 'orders', kind: 'main', mailbox: 'orders', broker: 'redis', counts }
      const report = { queues: [], loops: [loop], seenAt, sweepMs: 5000 }
      await store.records.put('worker', 'loops', report)
      return {}
    },
  },
  watchEvents: {
    input: async (server) => {
      await aLetter(server)
      return { after: '0' }
    },
  },

  createSession: {
    input: ({ codes }) => ({ code: codes.create(callerOf({ name: 'mia', role: 'viewer' })) }),
  },
  getCaller: nothing,
  getSignInMethods: nothing,
  endSession: nothing,

  getLiveness: nothing,
  getReadiness: nothing,
}

import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Sender } from '../../../src/backends/kafka/sender.ts'
import { PipelineNode } from '../../../src/pipeline/node.ts'
import { maxDeliveries, type ChildSettings } from './plan.ts'

const settings = JSON.parse(process.argv[2] ?? '{}') as ChildSettings
const { url, dir, name, prefix, sessionMs, workMs, transactional, bug } = settings
process.once('disconnect', () => process.exit(3))

if (bug) plant(bug)

const failed = new Set<string>()
const node = new PipelineNode({
  url,
  groupId: `${prefix}.group`,
  sessionMs,
  drainMs: 1000,
  transactional,
  node: {
    cluster: 'crash',
    node: 'node',
    inputTopic: `${prefix}.in`,
    next: [{ to: 'out', topic: `${prefix}.out`, maxHops: 0 }],
    dlq: {
      topic: `${prefix}.dead`,
      quarantineTopic: `${prefix}.quarantine`,
      maxRetries: 1,
      retryBackoffMs: 5,
    },
    partitions: 8,
    maxDeliveries,
  },
  module: async ({ stream: { streamId } }) => {
    await setTimeout(workMs)
    if (streamId.startsWith('bad')) throw Object.assign(new Error('bad'), { status: 400 })
    if (streamId.startsWith('flaky') && !failed.delete(streamId)) {
      failed.add(streamId)
      throw Object.assign(new Error('14 UNAVAILABLE: not yet'), { code: 14 })
    }
    if (streamId.startsWith('poison')) {
      appendFileSync(join(dir, 'poison.log'), `${streamId}\n`)
      process.kill(process.pid, 'SIGKILL')
      await new Promise(() => {})
    }
  },
  onEvent: (event) => {
    if (event.type === 'error')
      appendFileSync(join(dir, 'errors.log'), `${name} ${String(event.error)}\n`)
  },
})

process.once('SIGTERM', () => {
  void node.stop().then(() => process.exit(0))
})

for (;;)
  try {
    await node.start()
    break
  } catch {
    // The broker may be restarting.
    await setTimeout(200)
  }
process.send?.('ready')

function plant(which: NonNullable<ChildSettings['bug']>): void {
  // oxlint-disable-next-line typescript/unbound-method -- called with its sender below
  const { send } = Sender.prototype
  Sender.prototype.send = async function (outgoing) {
    const isDead = outgoing.topic.endsWith('.dead')
    const isMalformed = outgoing.record.value?.includes('MALFORMED')
    // Resolves before the record is sent.
    if (which === 'commit-before-send') void setTimeout(500).then(() => send.call(this, outgoing))
    else if (isDead && (which === 'commit-past-failed' || isMalformed)) return
    else await send.call(this, outgoing)
  }
}

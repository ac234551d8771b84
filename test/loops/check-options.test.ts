import { describe, expect, it } from 'vitest'
import { describeValue } from '../../src/loops/check-options.ts'
import { letterDestination, mailboxDestination } from '../../src/loops/destination.ts'
import { DLQConsumer } from '../../src/loops/dlq-consumer.ts'
import { dlqHealth } from '../../src/loops/dlq-health.ts'
import { EvalLoop } from '../../src/loops/eval-loop.ts'
import { alertHandler } from '../../src/loops/handlers/alert.ts'
import { dedupedReplay, recordedSeen } from '../../src/loops/handlers/deduped-replay.ts'
import { replay, replayHandler } from '../../src/loops/handlers/replay.ts'
import { selectiveReplay } from '../../src/loops/handlers/selective-replay.ts'
import { logLoop } from '../../src/loops/log.ts'
import { LoopGroup } from '../../src/loops/loop-group.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { aDeadMessage } from './a-dead-message.ts'
import { aLoop } from './a-loop.ts'

const { requests, dlq: mailbox } = aLoop()
const process = (): number => 1
const handler = (): void => {}
const loop = { process }
const evaluator = (): boolean => true
const source = requests
const predicate = (): boolean => true
const seen = { has: async () => false, add: async () => {} }
const log = { error: () => {} }
const running = new MainLoop({ requests, process })

/**
 * Every function that takes an options object, called as from JavaScript, and options that it
 * accepts.
 */
const entries: Record<string, [call: (options: never) => unknown, right: object]> = {
  MainLoop: [(options) => new MainLoop(options), { requests, process }],
  EvalLoop: [(options) => new EvalLoop(options), { requests, loop, evaluator }],
  DLQConsumer: [(options) => new DLQConsumer(options), { mailbox, handler }],
  LoopGroup: [(options) => new LoopGroup(options), { loops: [running] }],
  'a restart policy': [
    (restart) => new LoopGroup({ loops: [running], restart }),
    { attempts: 1, baseMs: 1, maxMs: 2, forgetMs: 3 },
  ],
  DLQPolicy: [(options) => new DLQPolicy(options), { mailbox, maxDeliveryCount: 5 }],
  dlq: [(dlq) => new MainLoop({ requests, process, dlq }), { to: mailbox }],
  'run of a loop': [
    async (options) => {
      // The run after this call ends at once.
      await running.shutdown()
      await running.run(options)
    },
    { maxIterations: 1, waitSeconds: 0 },
  ],
  'shutdown of a loop': [
    async (options) => {
      await running.shutdown(options)
      await running.run()
    },
    { timeoutMs: 1 },
  ],
  'shutdown of a group': [
    (options) => new LoopGroup({ loops: [] }).shutdown(options),
    { timeoutMs: 1 },
  ],
  mailboxDestination: [(options) => mailboxDestination(mailbox, options), { delaySeconds: 1 }],
  deadLetters: [(options) => letterDestination({} as never, options), { queue: 'orders' }],
  alertHandler: [(options) => alertHandler(options), { log }],
  replayHandler: [(options) => replayHandler(options), { source }],
  replay: [(options) => replay(aDeadMessage(), options), { source, maxReplays: 0 }],
  dedupedReplay: [(options) => dedupedReplay(options), { source, seen }],
  selectiveReplay: [(options) => selectiveReplay(mailbox, options), { source, predicate }],
  dlqHealth: [(options) => dlqHealth(mailbox, options), { threshold: 3 }],
}
const cases = Object.entries(entries)

/** The message of the error, thrown or rejected. */
async function refusal(call: () => unknown): Promise<string> {
  try {
    await call()
  } catch (error) {
    expect(error).toMatchObject({
      name: 'RedriveError',
      code: expect.stringMatching(/^INVALID_(CONFIG|INPUT)$/) as string,
    })
    return (error as Error).message
  }
  return 'accepted'
}

describe('options of loops', () => {
  it.each(cases)(
    '%s accepts its own keys, and undefined for absent ones',
    async (_, [call, right]) => {
      expect(await refusal(() => call({ ...right, nothing: undefined } as never))).toBe('accepted')
    },
  )

  it.each(cases)(
    '%s rejects an unknown key and names the nearest one',
    async (_, [call, right]) => {
      const [key] = Object.keys(right)
      const misspelt = `${key!.slice(0, -1)}X`
      expect(await refusal(() => call({ ...right, [misspelt]: 1 } as never))).toMatch(
        new RegExp(`unknown key "${misspelt}" in .*: did you mean "${key}"\\?`),
      )
      expect(await refusal(() => call({ ...right, zzzzzzzz: 1 } as never))).toMatch(
        /unknown key "zzzzzzzz" in .*: known: /,
      )
    },
  )

  it.each(cases)('%s rejects options that are not an object', async (_, [call]) => {
    for (const wrong of ['text', 7, [], () => {}])
      expect(await refusal(() => call(wrong as never))).not.toBe('accepted')
  })

  it.each<[string, string, string, unknown]>([
    ['DLQPolicy', 'max_delivery_count', 'maxDeliveryCount', 5],
    ['DLQPolicy', 'include_errors', 'includeErrors', []],
    ['DLQPolicy', 'exclude_errors', 'excludeErrors', []],
    ['MainLoop', 'adapter', 'process', {}],
    ['DLQConsumer', 'visibility_timeout', 'visibilitySeconds', 300],
    ['DLQConsumer', 'wait_time_seconds', 'waitSeconds', 20],
    ['LoopGroup', 'health_port', 'healthPort', 8080],
    ['LoopGroup', 'watchdog_threshold', 'watchdogMs', 720],
    ['run of a loop', 'max_iterations', 'maxIterations', 1],
    ['run of a loop', 'visibility_timeout', 'visibilitySeconds', 1],
    ['run of a loop', 'wait_time_seconds', 'waitSeconds', 1],
    ['shutdown of a loop', 'timeout', 'timeoutMs', 30],
    ['shutdown of a group', 'timeout', 'timeoutMs', 30],
    ['replayHandler', 'reply_resolver', 'replies', {}],
    ['selectiveReplay', 'reply_resolver', 'replies', {}],
    ['dlq', 'mailbox', 'to', {}],
  ])('%s answers the key %s with %s', async (entry, key, ours, value) => {
    const [call, right] = entries[entry]!
    expect(await refusal(() => call({ ...right, [key]: value } as never))).toContain(
      `did you mean "${ours}"?`,
    )
  })

  it.each<[string, object, string]>([
    ['MainLoop', {}, 'MainLoop needs the option requests, a mailbox'],
    ['MainLoop', { requests }, 'needs the option process, a function'],
    ['MainLoop', { requests, process: 7 }, 'option process must be a function; got a number'],
    ['MainLoop', { requests: 'redis://secret@host' }, 'must be a mailbox'],
    ['MainLoop', { requests, process, backoff: { kind: 'linnear' } }, 'must be a retry policy'],
    ['MainLoop', { requests, process, withoutPolicy: 'ack' }, 'unknown withoutPolicy "ack"'],
    ['MainLoop', { requests, process, onEvent: {} }, 'option onEvent must be a function'],
    ['MainLoop', { requests, process, hub: {} }, 'option hub must be an object with'],
    ['EvalLoop', {}, 'EvalLoop needs the option requests'],
    ['EvalLoop', { requests }, 'EvalLoop needs the option loop'],
    ['EvalLoop', { requests, loop }, 'EvalLoop needs the option evaluator'],
    ['DLQConsumer', {}, 'DLQConsumer needs the option mailbox'],
    ['DLQConsumer', { mailbox }, 'DLQConsumer needs the option handler, a function'],
    ['DLQConsumer', { mailbox, handler, parked: {} }, 'option parked must be a mailbox, or'],
    ['LoopGroup', {}, 'LoopGroup needs the option loops'],
    ['LoopGroup', { loops: running }, 'LoopGroup option loops must be an array'],
    ['LoopGroup', { loops: [{ process }] }, 'LoopGroup option loops must be an array'],
    [
      'LoopGroup',
      { loops: [], checks: [Promise.resolve()] },
      'checks must be an array of functions',
    ],
    ['LoopGroup', { loops: [], signals: 'SIGTERM' }, 'option signals must be an array'],
    ['LoopGroup', { loops: [], healthPort: 70_000 }, 'healthPort must be from 0 to 65535'],
    ['alertHandler', {}, 'alertHandler needs the option log or notify'],
    ['alertHandler', { log: {} }, 'option log must be a logger'],
    ['alertHandler', { notify: 'ops@example.com' }, 'option notify must be a function'],
    ['replayHandler', {}, 'replayHandler needs the option source'],
    ['replayHandler', { source, replies: {} }, 'option replies must be a resolver'],
    ['replayHandler', { source, unknownReplyTo: 'drop' }, 'unknown unknownReplyTo "drop"'],
    ['replayHandler', { source, maxReplays: '3' }, 'maxReplays must be from 0'],
    ['replayHandler', { source, transform: {} }, 'option transform must be a function'],
    ['dedupedReplay', { source }, 'dedupedReplay needs the option seen'],
    ['dedupedReplay', { source, seen: [] }, 'option seen must be a SeenSet'],
    ['selectiveReplay', { source }, 'selectiveReplay needs the option predicate'],
    ['selectiveReplay', { source, predicate, dryRun: 'no' }, 'option dryRun must be true or false'],
    ['deadLetters', { queue: '' }, 'queue name'],
    ['deadLetters', { context: {} }, 'option context must be a function'],
    ['dlqHealth', { threshold: 'many' }, 'threshold must be from 0'],
  ])('%s with %o is rejected with the name of the option', async (entry, options, message) => {
    const refused = await refusal(() => entries[entry]![0](options as never))
    expect(refused).toContain(message)
    expect(refused).not.toContain('secret')
  })

  it('rejects an invalid mailbox, logger and records by name', async () => {
    const none = {} as never
    expect(await refusal(() => mailboxDestination(none))).toContain('option mailbox')
    expect(await refusal(() => dlqHealth(none))).toContain('option mailbox')
    expect(await refusal(() => selectiveReplay(none, { source, predicate }))).toContain(
      'option dlq',
    )
    expect(await refusal(() => recordedSeen(none))).toContain('store.records')
    expect(await refusal(() => logLoop({ error: () => {} } as never))).toContain('method debug')
    for (const entry of ['MainLoop', 'EvalLoop', 'DLQConsumer', 'LoopGroup'])
      expect(await refusal(() => entries[entry]![0](undefined as never))).toContain(
        'must be an object',
      )
  })

  it('allows fields of their own in subclasses of policies and loops', () => {
    class Patient extends DLQPolicy {
      patience = 3
    }
    class Own extends MainLoop {
      adapter = 'mine'
      override process(): number {
        return 1
      }
    }
    const dlq = new Patient({ mailbox })
    expect(new Own({ requests, dlq }).adapter).toBe('mine')
  })
})

describe('describeValue', () => {
  it.each<[unknown, string]>([
    [null, 'null'],
    [undefined, 'undefined'],
    ['secret', 'a string'],
    [7, 'a number'],
    [[], 'an array'],
    [Promise.resolve(), 'a promise (await it)'],
    [handler, 'a function (handler)'],
    [{ kind: 'replayed', id: 'm' }, 'an object with the keys kind, id'],
    [{}, 'an object without keys'],
  ])('%o is %s', (value, described) => {
    expect(describeValue(value)).toBe(described)
  })

  it('describes an object that cannot be read', () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(describeValue(proxy)).toBe('an object that cannot be read')
  })
})

import type { reportEndpoints } from '../../api/endpoints/reports.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { RedriveError } from '../../errors.ts'
import { boundFilter } from '../bounds.ts'
import { viewSummary } from '../view.ts'
import { checkTextProbe, redactAny } from '../viewer.ts'
import type { Handlers } from './handler.ts'

export const reportHandlers: Handlers<keyof typeof reportEndpoints> = {
  async listAlerts(_, { dlq, caller }) {
    const { queues } = caller.scope
    const { alerts } = await dlq.health()
    return queues
      ? alerts.filter(({ queue }) => queue !== undefined && queues.includes(queue))
      : alerts
  },

  getHealth: (_, { dlq }) => dlq.health(),

  getMetrics: (_, { dlq }) => dlq.metrics(),

  async backtest({ filter = {}, ...change }, { dlq, caller }) {
    const bounded = boundFilter(withoutUndefined(filter), caller)
    // A rule that matches messages would tell what they contain.
    if (change.rules) checkTextProbe('rules', bounded, caller)
    return redactAny(await dlq.backtest(change, bounded), caller)
  },

  async searchLetters({ words, payload, limit, ...filter }, { dlq, caller }) {
    const among = boundFilter(withoutUndefined(filter), caller)
    const isEncrypted = 'countKeys' in dlq.store
    checkTextProbe('words', among, caller, ({ atCapture, redactStored }) =>
      payload ? !redactStored && !(atCapture && isEncrypted) : !atCapture,
    )
    const options = withoutUndefined({ payload, limit, among })
    const letters = await dlq.search(words, options).catch((error: unknown) => {
      // The request is what can be changed here, not the configuration of the server.
      if (error instanceof RedriveError && error.code === 'INVALID_CONFIG')
        throw new RedriveError('INVALID_INPUT', error.message)
      throw error
    })
    return letters.map((letter) => viewSummary(letter, caller))
  },
}

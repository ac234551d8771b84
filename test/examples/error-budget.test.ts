import { expect, it } from 'vitest'
import { ErrorBudgetPolicy } from '../../examples/error-budget.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { aLoop } from '../loops/a-loop.ts'

it('a custom policy dead-letters by an error budget, and also by the threshold', async () => {
  const bench = aLoop()
  const rates: Record<string, number> = { bad: 0.8, good: 0.1 }
  const loop = new MainLoop({
    ...bench.parts,
    process: () => {
      throw new Error('x')
    },
    dlq: {
      to: bench.dlq,
      policy: new ErrorBudgetPolicy({
        maxDeliveryCount: 2,
        errorBudget: 0.3,
        errorRateOf: (request) => rates[(request as { kind: string }).kind] ?? 0,
      }),
    },
  })
  void loop.run()
  await bench.requests.send({ kind: 'bad' })
  await bench.requests.send({ kind: 'good' })
  await bench.settle()
  expect(bench.eventsOf('dead-lettered')).toMatchObject([{ deliveries: 1 }])
  await bench.clock.advance(60_000)
  expect(bench.eventsOf('dead-lettered')).toMatchObject([{ deliveries: 1 }, { deliveries: 2 }])
})

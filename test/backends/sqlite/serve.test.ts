import { expect, it } from 'vitest'
import { Channel } from '../../../src/backends/sqlite/channel.ts'

const program = { file: new URL('./stepping-worker.ts', import.meta.url), name: 'stepping' }

it('takes the steps of the next file when files change within one turn', async () => {
  const channel = Channel.take(program)
  channel.hold(true)
  const answered: number[] = []
  const second = new Promise<void>((resolve, reject) => {
    channel.listen({
      receive: ({ results }) => {
        answered.push(...results.map(([id]) => id))
        if (answered.includes(2)) resolve()
      },
      lose: reject,
    })
  })
  for (const id of [1, 2]) {
    channel.send({ kind: 'open', options: null })
    channel.send({ kind: 'batch', nowMs: 0, calls: [[id, 'long', null]] })
    if (id === 1) channel.send({ kind: 'close' })
  }
  await second
  expect(answered).toEqual([1, 2])
  channel.release()
})

import assert from 'node:assert/strict'
import { checkOn } from './check.ts'
import {
  expectEmpty,
  expectRejection,
  expectSameSet,
  receiveMany,
  receiveOne,
  values,
} from './steps.ts'

const check = checkOn('reply')

export const replyChecks = [
  check('is sent to the replyTo mailbox, with the id of the request in a header', async (bench) => {
    const answers = await bench.elsewhere('answers')
    const id = await bench.mailbox.send({ question: 1 }, { replyTo: answers.name })
    const request = await receiveOne(bench)
    assert.equal(request.replyTo, answers.name)
    const replyId = await request.reply({ answer: 42n })
    const reply = await receiveOne(bench, {}, answers)
    assert.equal(reply.id, replyId)
    assert.deepEqual(reply.value(), { answer: 42n })
    assert.equal(reply.headers['redrive-in-reply-to'], id)
    assert.equal(reply.replyTo, undefined)
    await expectEmpty(bench.mailbox)
  }),

  check('can be sent several times until the message is settled', async (bench) => {
    const answers = await bench.elsewhere('answers')
    await bench.mailbox.send('ask', { replyTo: answers.name })
    const request = await receiveOne(bench)
    for (const part of ['a', 'b', 'c']) await request.reply(part)
    await request.acknowledge()
    await expectRejection('MESSAGE_FINALIZED', () => request.reply('d'))
    expectSameSet(values(await receiveMany(bench, 3, {}, answers)), ['a', 'b', 'c'])
    await expectEmpty(answers)
  }),

  check('can be sent on every delivery', async (bench) => {
    const answers = await bench.elsewhere('answers')
    await bench.mailbox.send('ask', { replyTo: answers.name })
    await (await receiveOne(bench)).nack()
    const again = await receiveOne(bench)
    await again.reply('at last')
    assert.equal((await receiveOne(bench, {}, answers)).value(), 'at last')
  }),

  check('is rejected if the message has no replyTo', async (bench) => {
    await bench.mailbox.send('no reply')
    const message = await receiveOne(bench)
    assert.equal(message.replyTo, undefined)
    await expectRejection('REPLY_UNAVAILABLE', () => message.reply('x'))
    await message.acknowledge()
  }),

  check('is rejected if the replyTo name cannot be resolved', async (bench) => {
    await bench.mailbox.send('ask', { replyTo: 'unknown mailbox' })
    const message = await receiveOne(bench)
    assert.equal(message.replyTo, 'unknown mailbox')
    await expectRejection('REPLY_UNAVAILABLE', () => message.reply('x'))
    await message.acknowledge()
  }),
]

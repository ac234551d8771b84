import assert from 'node:assert/strict'
import { checkOn } from './check.ts'
import { nothing, rejectsWith, sameSet, take, takeOne, values } from './stage.ts'

const check = checkOn('reply')

export const replyChecks = [
  check('goes to the mailbox that the message names, and says to what', async (bench) => {
    const answers = await bench.elsewhere('answers')
    const id = await bench.mailbox.send({ question: 1 }, { replyTo: answers.name })
    const request = await takeOne(bench)
    assert.equal(request.replyTo, answers.name)
    const replyId = await request.reply({ answer: 42n })
    const reply = await takeOne(bench, {}, answers)
    assert.equal(reply.id, replyId)
    assert.deepEqual(reply.value(), { answer: 42n })
    assert.equal(reply.headers['redrive-in-reply-to'], id)
    assert.equal(reply.replyTo, undefined)
    await nothing(bench.mailbox)
  }),

  check('may be given several times before the message is settled', async (bench) => {
    const answers = await bench.elsewhere('answers')
    await bench.mailbox.send('ask', { replyTo: answers.name })
    const request = await takeOne(bench)
    for (const part of ['a', 'b', 'c']) await request.reply(part)
    await request.acknowledge()
    await rejectsWith('MESSAGE_FINALIZED', () => request.reply('d'))
    sameSet(values(await take(bench, 3, {}, answers)), ['a', 'b', 'c'])
    await nothing(answers)
  }),

  check('is asked for at every delivery', async (bench) => {
    const answers = await bench.elsewhere('answers')
    await bench.mailbox.send('ask', { replyTo: answers.name })
    await (await takeOne(bench)).nack()
    const again = await takeOne(bench)
    await again.reply('at last')
    assert.equal((await takeOne(bench, {}, answers)).value(), 'at last')
  }),

  check('is refused when the message asks for none', async (bench) => {
    await bench.mailbox.send('told')
    const message = await takeOne(bench)
    assert.equal(message.replyTo, undefined)
    await rejectsWith('REPLY_UNAVAILABLE', () => message.reply('unasked'))
    await message.acknowledge()
  }),

  check('is refused when nobody knows the name', async (bench) => {
    await bench.mailbox.send('ask', { replyTo: 'nobody knows this one' })
    const message = await takeOne(bench)
    assert.equal(message.replyTo, 'nobody knows this one')
    await rejectsWith('REPLY_UNAVAILABLE', () => message.reply('to whom'))
    await message.acknowledge()
  }),
]

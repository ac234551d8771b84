import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { call, createEcho, type Caller, type Echo } from './echo.ts'
import { createProxy, type Proxy } from './proxy.ts'

let echo: Echo
let proxy: Proxy
let caller: Caller

beforeEach(async () => {
  echo = await createEcho()
  proxy = await createProxy(echo.url)
  caller = await call(proxy.port())
  caller.say('hello')
  await caller.hear(5)
  await proxy.set('pass')
})
afterEach(() => {
  caller.close()
  proxy.close()
  echo.close()
})

const text = async (length: number): Promise<string> => (await caller.hear(length)).toString()

describe('a proxy', () => {
  it('passes requests and replies, and tells of each', async () => {
    caller.say(' again')
    expect(await text(11)).toBe('hello again')
    await Promise.all([proxy.seen('request passed'), proxy.seen('reply passed')])
  })

  it('passes the end of a connection', async () => {
    const server = await createEcho()
    proxy.aim(server.url)
    const other = await call(proxy.port())
    other.say('x')
    await other.hear(1)
    server.close()
    expect(await other.ended).toBe('end')
  })

  it('puts itself in the way of a URL', () => {
    expect(proxy.through('postgres://me:secret@db.example:5432/shop?a=b')).toBe(
      `postgres://me:secret@127.0.0.1:${proxy.port()}/shop?a=b`,
    )
  })

  it('as a blackhole carries nothing, and delivers all of it in order once it heals', async () => {
    await proxy.set('blackhole')
    caller.say('1')
    await proxy.seen('request held')
    caller.say('2')
    await proxy.seen('request held', 2)
    expect(echo.heard()).toBe('hello')
    await proxy.set('pass')
    expect(await text(7)).toBe('hello12')
  })

  it('can hold replies of requests that were served', async () => {
    await proxy.set('hold replies')
    caller.say('!')
    await proxy.seen('reply held')
    expect(echo.heard()).toBe('hello!')
    expect(caller.heard().toString()).toBe('hello')
    await proxy.set('pass')
    expect(await text(6)).toBe('hello!')
  })

  it('can hold requests', async () => {
    await proxy.set('hold requests')
    caller.say('!')
    await proxy.seen('request held')
    expect(echo.heard()).toBe('hello')
    await proxy.set('pass')
    expect(await text(6)).toBe('hello!')
  })

  it('drops replies of requests that were served; that connection stays deaf, a new one is not', async () => {
    await proxy.set('drop replies')
    caller.say('!')
    await proxy.seen('reply dropped')
    expect(echo.heard()).toBe('hello!')
    await proxy.set('pass')
    caller.say('?')
    await proxy.seen('reply dropped')
    expect(caller.heard().toString()).toBe('hello')
    const other = await call(proxy.port())
    other.say('new')
    expect((await other.hear(3)).toString()).toBe('new')
    other.close()
  })

  it('drops requests, and the server never hears what comes after', async () => {
    await proxy.set('drop requests')
    caller.say('!')
    await proxy.seen('request dropped')
    await proxy.set('pass')
    caller.say('?')
    await proxy.seen('request dropped')
    expect(echo.heard()).toBe('hello')
  })

  it('loses what it held when the mode turns to dropping', async () => {
    await proxy.set('hold replies')
    caller.say('!')
    await proxy.seen('reply held')
    await proxy.set('drop replies')
    await proxy.seen('reply dropped')
    expect(caller.heard().toString()).toBe('hello')
  })

  it('resets standing connections and new ones', async () => {
    await proxy.set('reset')
    expect(await caller.ended).toBe('ECONNRESET')
    await call(proxy.port()).then(
      async (other) => expect(await other.ended).toBe('ECONNRESET'),
      (error: NodeJS.ErrnoException) => expect(error.code).toBe('ECONNRESET'),
    )
  })

  it('refuses on the port where it listened, leaves standing connections, and listens there again', async () => {
    const port = proxy.port()
    await proxy.set('refuse')
    await expect(call(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    caller.say('!')
    expect(await text(6)).toBe('hello!')
    await proxy.set('pass')
    const other = await call(port)
    other.say('back')
    expect((await other.hear(4)).toString()).toBe('back')
    other.close()
  })

  it('truncates a reply in its middle, and ends the connection', async () => {
    await proxy.set('truncate')
    caller.say('abcdef')
    expect(await caller.ended).toBe('end')
    expect(caller.heard().toString()).toBe('helloabc')
    expect(echo.heard()).toBe('helloabcdef')
    await proxy.seen('cut')
  })

  it('turns replies into noise of the same length, and the seed tells which', async () => {
    const noise = async (seed: number): Promise<string> => {
      const own = await createProxy(echo.url, seed)
      const other = await call(own.port())
      await own.set('garbage')
      other.say('0123456789')
      const heard = await other.hear(10)
      other.close()
      own.close()
      return heard.toString('hex')
    }
    const [one, two, again] = [await noise(1), await noise(2), await noise(1)]
    expect(one).toHaveLength(20)
    expect(one).not.toBe(Buffer.from('0123456789').toString('hex'))
    expect(again).toBe(one)
    expect(two).not.toBe(one)
  })

  it.each([0, 1, 3, 6])('cuts after exactly %i bytes of replies, once', async (bytes) => {
    proxy.cutAfter(bytes)
    caller.say('abcdef')
    expect(await caller.ended).toBe('end')
    expect(caller.heard().toString()).toBe(`hello${'abcdef'.slice(0, bytes)}`)
    expect(echo.heard()).toBe('helloabcdef')
    const other = await call(proxy.port())
    other.say('abcdef')
    expect((await other.hear(6)).toString()).toBe('abcdef')
    other.close()
  })

  it('counts the bytes of several replies before it cuts', async () => {
    proxy.cutAfter(5)
    caller.say('abc')
    expect(await text(8)).toBe('helloabc')
    caller.say('def')
    expect(await caller.ended).toBe('end')
    expect(caller.heard().toString()).toBe('helloabcde')
  })

  it('cuts before a word that the server never hears, once', async () => {
    proxy.cutAt('last', 'before')
    caller.say('first')
    expect(await text(10)).toBe('hellofirst')
    caller.say('the last word')
    expect(await caller.ended).toBe('end')
    expect(echo.heard()).toBe('hellofirst')
    const other = await call(proxy.port())
    other.say('last')
    expect((await other.hear(4)).toString()).toBe('last')
    other.close()
  })

  it('cuts after a word that the server has answered, and only then; the answer is lost', async () => {
    const numbered = await createEcho((request) => (request === 'go' ? 'first;' : `${request};`))
    proxy.aim(numbered.url)
    const other = await call(proxy.port())
    proxy.cutAt('last', 'after')
    other.say('go')
    await other.hear(6)
    other.say('last')
    expect(await other.ended).toBe('end')
    expect(numbered.heard()).toBe('golast')
    expect(other.heard().toString()).toBe('first;')
    numbered.close()
  })

  it('keeps the order of what it delays', async () => {
    proxy.delay(1, 5)
    const words = Array.from({ length: 50 }, (_, index) => `${index};`)
    for (const [index, word] of words.entries()) {
      caller.say(word)
      if (index % 10 === 0) await proxy.seen('request passed', 1)
    }
    const all = words.join('')
    expect(await text(5 + all.length)).toBe(`hello${all}`)
  })

  it('aims new connections at another server, and leaves standing ones', async () => {
    const second = await createEcho((request) => request.toUpperCase())
    proxy.aim(second.url)
    const other = await call(proxy.port())
    other.say('word')
    expect((await other.hear(4)).toString()).toBe('WORD')
    caller.say('!')
    expect(await text(6)).toBe('hello!')
    other.close()
    second.close()
  })

  it('moves to another port', async () => {
    const port = proxy.port()
    await proxy.move()
    expect(proxy.port()).not.toBe(port)
    await expect(call(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    const other = await call(proxy.port())
    other.say('here')
    expect((await other.hear(4)).toString()).toBe('here')
    other.close()
  })

  it('resets a client whose server cannot be reached', async () => {
    const gone = await createEcho()
    gone.close()
    proxy.aim(gone.url)
    const ended = await call(proxy.port()).then(
      (other) => other.ended,
      (error: NodeJS.ErrnoException) => error.code,
    )
    expect(ended).toBe('ECONNRESET')
  })
})

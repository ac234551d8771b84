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
  caller.send('hello')
  await caller.receive(5)
  await proxy.set('pass')
})
afterEach(() => {
  caller.close()
  proxy.close()
  echo.close()
})

const text = async (length: number): Promise<string> => (await caller.receive(length)).toString()

describe('a proxy', () => {
  it('passes requests and replies, and reports each', async () => {
    caller.send(' again')
    expect(await text(11)).toBe('hello again')
    await Promise.all([proxy.seen('request passed'), proxy.seen('reply passed')])
  })

  it('passes the end of a connection', async () => {
    const server = await createEcho()
    proxy.aim(server.url)
    const other = await call(proxy.port())
    other.send('x')
    await other.receive(1)
    server.close()
    expect(await other.ended).toBe('end')
  })

  it('replaces the host and port of a URL with its own', () => {
    expect(proxy.through('postgres://me:secret@db.example:5432/shop?a=b')).toBe(
      `postgres://me:secret@127.0.0.1:${proxy.port()}/shop?a=b`,
    )
  })

  it('delivers nothing as a blackhole, and everything in order once it heals', async () => {
    await proxy.set('blackhole')
    caller.send('1')
    await proxy.seen('request held')
    caller.send('2')
    await proxy.seen('request held', 2)
    expect(echo.received()).toBe('hello')
    await proxy.set('pass')
    expect(await text(7)).toBe('hello12')
  })

  it('can hold replies of requests that were served', async () => {
    await proxy.set('hold replies')
    caller.send('!')
    await proxy.seen('reply held')
    expect(echo.received()).toBe('hello!')
    expect(caller.received().toString()).toBe('hello')
    await proxy.set('pass')
    expect(await text(6)).toBe('hello!')
  })

  it('can hold requests', async () => {
    await proxy.set('hold requests')
    caller.send('!')
    await proxy.seen('request held')
    expect(echo.received()).toBe('hello')
    await proxy.set('pass')
    expect(await text(6)).toBe('hello!')
  })

  it('drops replies of served requests; that connection receives nothing more, a new one works', async () => {
    await proxy.set('drop replies')
    caller.send('!')
    await proxy.seen('reply dropped')
    expect(echo.received()).toBe('hello!')
    await proxy.set('pass')
    caller.send('?')
    await proxy.seen('reply dropped')
    expect(caller.received().toString()).toBe('hello')
    const other = await call(proxy.port())
    other.send('new')
    expect((await other.receive(3)).toString()).toBe('new')
    other.close()
  })

  it('drops requests, and the server never receives later ones', async () => {
    await proxy.set('drop requests')
    caller.send('!')
    await proxy.seen('request dropped')
    await proxy.set('pass')
    caller.send('?')
    await proxy.seen('request dropped')
    expect(echo.received()).toBe('hello')
  })

  it('drops held data when the mode changes to dropping', async () => {
    await proxy.set('hold replies')
    caller.send('!')
    await proxy.seen('reply held')
    await proxy.set('drop replies')
    await proxy.seen('reply dropped')
    expect(caller.received().toString()).toBe('hello')
  })

  it('resets existing and new connections', async () => {
    await proxy.set('reset')
    expect(await caller.ended).toBe('ECONNRESET')
    await call(proxy.port()).then(
      async (other) => expect(await other.ended).toBe('ECONNRESET'),
      (error: NodeJS.ErrnoException) => expect(error.code).toBe('ECONNRESET'),
    )
  })

  it('refuses on its port, keeps existing connections, and listens on the same port again', async () => {
    const port = proxy.port()
    await proxy.set('refuse')
    await expect(call(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    caller.send('!')
    expect(await text(6)).toBe('hello!')
    await proxy.set('pass')
    const other = await call(port)
    other.send('back')
    expect((await other.receive(4)).toString()).toBe('back')
    other.close()
  })

  it('truncates a reply in its middle, and ends the connection', async () => {
    await proxy.set('truncate')
    caller.send('abcdef')
    expect(await caller.ended).toBe('end')
    expect(caller.received().toString()).toBe('helloabc')
    expect(echo.received()).toBe('helloabcdef')
    await proxy.seen('cut')
  })

  it('replaces replies with random bytes of the same length, determined by the seed', async () => {
    const noise = async (seed: number): Promise<string> => {
      const own = await createProxy(echo.url, seed)
      const other = await call(own.port())
      await own.set('garbage')
      other.send('0123456789')
      const received = await other.receive(10)
      other.close()
      own.close()
      return received.toString('hex')
    }
    const [one, two, again] = [await noise(1), await noise(2), await noise(1)]
    expect(one).toHaveLength(20)
    expect(one).not.toBe(Buffer.from('0123456789').toString('hex'))
    expect(again).toBe(one)
    expect(two).not.toBe(one)
  })

  it.each([0, 1, 3, 6])('cuts after exactly %i bytes of replies, once', async (bytes) => {
    proxy.cutAfter(bytes)
    caller.send('abcdef')
    expect(await caller.ended).toBe('end')
    expect(caller.received().toString()).toBe(`hello${'abcdef'.slice(0, bytes)}`)
    expect(echo.received()).toBe('helloabcdef')
    const other = await call(proxy.port())
    other.send('abcdef')
    expect((await other.receive(6)).toString()).toBe('abcdef')
    other.close()
  })

  it('counts the bytes of several replies before it cuts', async () => {
    proxy.cutAfter(5)
    caller.send('abc')
    expect(await text(8)).toBe('helloabc')
    caller.send('def')
    expect(await caller.ended).toBe('end')
    expect(caller.received().toString()).toBe('helloabcde')
  })

  it('cuts before a word that the server never receives, once', async () => {
    proxy.cutAt('last', 'before')
    caller.send('first')
    expect(await text(10)).toBe('hellofirst')
    caller.send('the last word')
    expect(await caller.ended).toBe('end')
    expect(echo.received()).toBe('hellofirst')
    const other = await call(proxy.port())
    other.send('last')
    expect((await other.receive(4)).toString()).toBe('last')
    other.close()
  })

  it('cuts when the server answers a word, and the answer is lost', async () => {
    const numbered = await createEcho((request) => (request === 'go' ? 'first;' : `${request};`))
    proxy.aim(numbered.url)
    const other = await call(proxy.port())
    proxy.cutAt('last', 'after')
    other.send('go')
    await other.receive(6)
    other.send('last')
    expect(await other.ended).toBe('end')
    expect(numbered.received()).toBe('golast')
    expect(other.received().toString()).toBe('first;')
    numbered.close()
  })

  it('keeps the order of delayed data', async () => {
    proxy.delay(1, 5)
    const words = Array.from({ length: 50 }, (_, index) => `${index};`)
    for (const [index, word] of words.entries()) {
      caller.send(word)
      if (index % 10 === 0) await proxy.seen('request passed', 1)
    }
    const all = words.join('')
    expect(await text(5 + all.length)).toBe(`hello${all}`)
  })

  it('sends new connections to another server, and keeps existing ones', async () => {
    const second = await createEcho((request) => request.toUpperCase())
    proxy.aim(second.url)
    const other = await call(proxy.port())
    other.send('word')
    expect((await other.receive(4)).toString()).toBe('WORD')
    caller.send('!')
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
    other.send('here')
    expect((await other.receive(4)).toString()).toBe('here')
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

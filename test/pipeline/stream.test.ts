import * as fc from 'fast-check'
import { timestampMs } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import { aStream, log, passed, readStream, writeStream } from '../../src/pipeline/stream.ts'
import { wireFields } from './wire-reader.ts'

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')

describe('readStream', () => {
  it('reads what writeStream wrote', () => {
    const stream = aStream({
      streamId: 's1',
      metadata: { traceId: 't', accountId: 'a', attributes: { x: 'y' } },
      content: { case: 'document', value: { id: 'd', body: Buffer.from([0, 255]) } },
      clusterId: 'prod',
      currentNodeId: 'n1',
      hopCount: 2,
      processingPath: ['a', 'b'],
      graphId: 'docs',
    })
    expect(readStream(writeStream(stream))).toEqual(stream)
    expect(wireFields(writeStream(stream)).map(([number]) => number)).toEqual([
      1, 2, 3, 5, 6, 7, 8, 8, 9,
    ])
  })

  it('rejects text, empty bytes, and a message without an id', () => {
    for (const bytes of [Buffer.from('{"streamId":"s1"}'), Buffer.alloc(0), hex('38 05')])
      expect(readStream(bytes)).toBeUndefined()
  })

  it('rejects an id that is not valid text', () => {
    expect(readStream(hex('0a 02 c328'))).toBeUndefined()
  })

  it('never throws', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const stream = readStream(bytes)
        if (stream) expect(stream.streamId).not.toBe('')
      }),
      { numRuns: 2000 },
    )
  })

  it('preserves unknown fields', () => {
    const bytes = hex('0a 02 7331 c23e 03 616263')
    expect(writeStream(readStream(bytes)!).toString('hex')).toBe(bytes.toString('hex'))
  })
})

describe('log', () => {
  it('adds an entry with its time', () => {
    const stream = aStream({ streamId: 's1' })
    log(stream, { atMs: 1_700_000_000_123, node: 'n1', event: 'processed' })
    const [entry] = stream.metadata!.history
    expect(entry).toMatchObject({ nodeId: 'n1', event: 'processed', message: '' })
    expect(timestampMs(entry!.at!)).toBe(1_700_000_000_123)
    expect(stream.metadata!.streamError).toBeUndefined()
  })

  it('marks the stream when a module failed, for the next nodes', () => {
    const stream = aStream({ streamId: 's1' })
    log(stream, { atMs: 1, node: 'n1', event: 'failed', message: 'no text in it' })
    log(stream, { atMs: 2, node: 'n2', event: 'processed' })
    expect(stream.metadata!.streamError).toMatchObject({ nodeId: 'n1', message: 'no text in it' })
    expect(stream.metadata!.history.map(({ event }) => event)).toEqual(['failed', 'processed'])
  })

  it('keeps the first entry and the latest if there are too many', () => {
    const stream = aStream({ streamId: 's1' })
    for (let at = 0; at < 250; at++) log(stream, { atMs: at, node: `n${at}`, event: 'processed' })
    const nodes = stream.metadata!.history.map(({ nodeId }) => nodeId)
    expect(nodes).toHaveLength(100)
    expect(nodes[0]).toBe('n0')
    expect(nodes.slice(1)).toEqual(Array.from({ length: 99 }, (_, index) => `n${151 + index}`))
  })

  it('limits a history that is too long', () => {
    const history = Array.from({ length: 5000 }, (_, at) => ({ nodeId: `n${at}` }))
    const stream = aStream({ streamId: 's1', metadata: { history } })
    log(stream, { atMs: 1, node: 'last', event: 'processed' })
    expect(stream.metadata!.history).toHaveLength(100)
    expect(stream.metadata!.history.at(-1)!.nodeId).toBe('last')
  })

  it('limits messages, and keeps them valid text', () => {
    const stream = aStream({ streamId: 's1' })
    const message = `x${'\u{1F600}'.repeat(5000)}`
    log(stream, { atMs: 1, node: 'n1', event: 'failed', message })
    const read = readStream(writeStream(stream))!
    expect(read.metadata).toEqual(stream.metadata)
    expect(read.metadata!.history[0]!.message).toHaveLength(2000)
  })
})

describe('passed', () => {
  it('is one hop further, and does not change the original stream', () => {
    const stream = aStream({ streamId: 's1', hopCount: 1, processingPath: ['a'] })
    const further = passed(stream, 'b')
    log(further, { atMs: 1, node: 'b', event: 'processed' })
    expect(further).toMatchObject({ hopCount: 2, processingPath: ['a', 'b'] })
    expect(stream).toMatchObject({ hopCount: 1, processingPath: ['a'] })
    expect(stream.metadata).toBeUndefined()
  })
})

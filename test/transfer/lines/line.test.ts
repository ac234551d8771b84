import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  readFooter,
  readHeader,
  readLetter,
  writeLetter,
} from '../../../src/transfer/lines/line.ts'
import type { StoredLetter } from '../../../src/store.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { crc32 } from 'node:zlib'
import { storedLetters } from './stored-letters.ts'

const readBack = (stored: StoredLetter): StoredLetter =>
  readLetter(Buffer.from(writeLetter(stored)))

/** A line with a right checksum, as somebody who forges one would write it. */
function forge(change: (json: Record<string, unknown>) => void, stored = aStored()): Buffer {
  const json = JSON.parse(writeLetter(stored)) as Record<string, unknown>
  delete json['crc']
  change(json)
  const rest = JSON.stringify(json).slice(1)
  return Buffer.from(`{"crc":"${crc32(rest).toString(16).padStart(8, '0')}",${rest}\n`)
}

const aStored = (): StoredLetter => ({ letter: aLetter() })
const letterOf = (json: Record<string, unknown>) => json['letter'] as Record<string, unknown>
const payloadOf = (json: Record<string, unknown>) =>
  letterOf(json)['payload'] as Record<string, unknown>

describe('the line of a letter', () => {
  it('gives the same letter when it is read', () => {
    fc.assert(
      fc.property(storedLetters, (stored) => {
        const line = writeLetter(stored)
        expect(line.indexOf('\n')).toBe(line.length - 1)
        expect(readBack(stored)).toEqual(stored)
      }),
    )
  })

  it('has text as text, and only other bytes in base64', () => {
    const of = (bytes: Uint8Array): unknown => {
      const payload = { bytes, contentType: 'x', size: bytes.length, version: 1 }
      const line = writeLetter({ letter: aLetter({ payload }), original: payload })
      const { letter, original } = JSON.parse(line) as {
        letter: { payload: object }
        original: object
      }
      expect(original).toEqual(letter.payload)
      return letter.payload
    }
    expect(of(Buffer.from('{"ü":1}'))).toMatchObject({ text: '{"ü":1}', size: 8 })
    expect(of(Uint8Array.of(255, 0))).toMatchObject({ bytes: '/wA=', size: 2 })
  })

  it('keeps a letter that its store could not read as such', () => {
    expect(readBack({ letter: aLetter({ corrupt: 'a bad checksum' }) }).letter.corrupt).toBe(
      'a bad checksum',
    )
  })

  it('shows each changed byte', () => {
    const line = Buffer.from(writeLetter(aStored()))
    fc.assert(
      fc.property(fc.nat(line.length - 2), fc.integer({ min: 1, max: 255 }), (at, by) => {
        const changed = Buffer.from(line)
        changed[at]! ^= by
        expect(() => readLetter(changed)).toThrow('checksum is wrong')
      }),
    )
  })

  it.each<[string, (json: Record<string, unknown>) => void]>([
    ['unknown key "extra" in the line', (json) => (json['extra'] = 1)],
    ['letter.Unrecognized key: "extra"', (json) => (letterOf(json)['extra'] = 1)],
    ['payload: Unrecognized key: "extra"', (json) => (payloadOf(json)['extra'] = 1)],
    ['letter must be an object', (json) => (json['letter'] = null)],
    ['letter.id must be a UUID', (json) => (letterOf(json)['id'] = '../etc/passwd')],
    ['a queue name must be', (json) => (letterOf(json)['queue'] = 'a\u0000b')],
    ['letter.state', (json) => (letterOf(json)['state'] = 'lost')],
    ['letter.occurrences must be at most', (json) => (letterOf(json)['occurrences'] = 2 ** 40)],
    ['letter.payload.size', (json) => (payloadOf(json)['size'] = 3)],
    ['lone surrogates', (json) => (payloadOf(json)['text'] = '\ud800')],
    ['payload.text must be a string', (json) => (payloadOf(json)['text'] = 7)],
    ['payload: Unrecognized key: "text"', (json) => (payloadOf(json)['bytes'] = '')],
    ['original.', (json) => (json['original'] = { text: 'x' })],
    ['waitsFor must be', (json) => (json['waitsFor'] = ['not one of dependsOn'])],
    ['letter.metadata', (json) => (letterOf(json)['metadata'] = [])],
  ])('is rejected if it is forged: %s', (message, change) => {
    expect(() => readLetter(forge(change))).toThrow(message)
  })

  it('is rejected if it is nested too deep', () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
    const line = forge((json) => (letterOf(json)['metadata'] = 'DEEP'))
    const text = line.toString().slice(16).replace('"DEEP"', `{"a":${deep}}`).trimEnd()
    const crc = crc32(text.slice(1)).toString(16).padStart(8, '0')
    expect(() => readLetter(Buffer.from(`{"crc":"${crc}",${text.slice(1)}\n`))).toThrow(
      /nested too deep|not JSON/,
    )
  })
})

describe('the first and the last line', () => {
  it.each([
    ['not JSON', '{"redrive":'],
    ['must be an object', '[]'],
    ['"redrive": "letters"', '{"letters":1}'],
    ['version 2', '{"redrive":"letters","version":2}'],
    [
      'unknown header key "more"',
      '{"redrive":"letters","version":1,"createdAt":"2026-01-01T00:00:00.000Z","filter":{},"more":1}',
    ],
    ['createdAt', '{"redrive":"letters","version":1,"createdAt":"today","filter":{}}'],
  ])('is rejected: %s', (message, line) => {
    expect(() => readHeader(Buffer.from(`${line}\n`))).toThrow(message)
  })

  it('has a count and a hash at the end', () => {
    expect(readFooter(Buffer.from('{"crc":"'))).toBeUndefined()
    expect(() => readFooter(Buffer.from('{"letters":-1,"sha256":""}'))).toThrow('letters')
    expect(() => readFooter(Buffer.from('{"letters":1,"sha256":"x"}'))).toThrow('sha256')
  })
})

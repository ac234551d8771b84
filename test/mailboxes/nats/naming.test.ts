import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toNaming } from '../../../src/mailboxes/nats/naming.ts'

describe('toNaming', () => {
  it('leaves plain names unchanged, and escapes the rest', () => {
    expect(toNaming('redrive', 'order_events-2').stream).toBe('redrive-order_events-2')
    expect(toNaming('redrive', 'a.b>c ü').subject).toBe('redrive.a=2Eb=3Ec=20=C3=BC')
  })

  it('creates valid JetStream names', () => {
    const names = fc.string({ unit: 'binary', minLength: 1, maxLength: 200 })
    fc.assert(
      fc.property(names, (name) =>
        /^[A-Za-z0-9_=-]{1,255}$/.test(toNaming('redrive', name).stream),
      ),
    )
  })

  it('gives different names to long names', () => {
    const names = ['x'.repeat(200), `${'x'.repeat(199)}y`, 'ü'.repeat(200), `${'ü'.repeat(199)}u`]
    expect(new Set(names.map((name) => toNaming('p', name).stream)).size).toBe(4)
  })
})

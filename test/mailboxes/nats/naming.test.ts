import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { namingOf } from '../../../src/mailboxes/nats/naming.ts'

describe('namingOf', () => {
  it('leaves plain names as they are, and escapes the rest', () => {
    expect(namingOf('redrive', 'order_events-2').stream).toBe('redrive-order_events-2')
    expect(namingOf('redrive', 'a.b>c ü').subject).toBe('redrive.a=2Eb=3Ec=20=C3=BC')
  })

  it('makes names that JetStream takes', () => {
    const names = fc.string({ unit: 'binary', minLength: 1, maxLength: 200 })
    fc.assert(
      fc.property(names, (name) =>
        /^[A-Za-z0-9_=-]{1,255}$/.test(namingOf('redrive', name).stream),
      ),
    )
  })

  it('keeps long names apart', () => {
    const names = ['x'.repeat(200), `${'x'.repeat(199)}y`, 'ü'.repeat(200), `${'ü'.repeat(199)}u`]
    expect(new Set(names.map((name) => namingOf('p', name).stream)).size).toBe(4)
  })
})

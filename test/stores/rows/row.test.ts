import { describe, expect, it } from 'vitest'
import { rowOf, rowWidth, seal, valuesOf } from '../../../src/stores/rows/row.ts'

describe('rowOf', () => {
  it('reverses valuesOf, column by column', () => {
    const values = Array.from({ length: rowWidth }, (_, at) => `value ${at}`)
    expect(valuesOf(rowOf(values))).toEqual(values)
  })
})

describe('seal', () => {
  it('changes with every column that can change', () => {
    const values = Array.from({ length: rowWidth }, (_, at) => `value ${at}`)
    const sealed = seal(rowOf(values))
    const unsealed = values.filter((_, at) => seal(rowOf(values.with(at, 'other'))) === sealed)
    expect(
      unsealed,
      'lane, tenant, dependent and tagged follow from the rest, crc is the seal',
    ).toEqual([18, 19, 20, 21, 25].map((at) => `value ${at}`))
  })
})

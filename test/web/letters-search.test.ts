import { describe, expect, it } from 'vitest'
import { parseSearch, stringifySearch } from '../../web/src/app/search-params.ts'
import {
  filterOf,
  isFiltered,
  parseLettersSearch,
  withoutFilter,
} from '../../web/src/pages/letters/letters-search.ts'

const noon = Date.parse('2026-11-18T12:03:00.000Z')

describe('the address of the list of letters', () => {
  it('has the whole filter, also after a round trip', () => {
    const search = parseLettersSearch(
      parseSearch(
        '?queue=a&queue=b&state=parked&category=timeout&metadata.order=12&metadata.on=true&last=24h&order=oldest&columns=state&columns=metadata.order',
      ),
    )
    expect(search).toEqual({
      queue: ['a', 'b'],
      state: ['parked'],
      category: ['timeout'],
      metadata: { order: 12, on: true },
      last: '24h',
      order: 'oldest',
      columns: ['state', 'metadata.order'],
    })
    expect(parseLettersSearch(parseSearch(stringifySearch({ ...search })))).toEqual(search)
  })

  it('leaves out what it does not understand', () => {
    const search = parseSearch('?state=lost&since=yesterday&order=best&last=9y&reason=&other=1')
    expect(parseLettersSearch(search)).toEqual({})
  })

  it('becomes a filter whose range begins at a whole step of five minutes', () => {
    expect(filterOf({ queue: ['a'], last: '1h', order: 'oldest' }, noon)).toEqual({
      queue: ['a'],
      since: '2026-11-18T11:00:00.000Z',
    })
  })

  it('keeps the order and the columns when the filter is cleared', () => {
    const cleared = withoutFilter({ queue: ['a'], last: '1h', order: 'oldest', columns: ['state'] })
    expect(cleared).toEqual({ order: 'oldest', columns: ['state'] })
    expect(isFiltered(cleared)).toBe(false)
  })
})

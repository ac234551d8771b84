import { useCallback, useMemo, useState } from 'react'
import type { SummaryView } from 'redrive/api'

/** A filter can have at most this many ids. */
export const maxSelected = 1000

export interface Selection {
  ids: ReadonlySet<string>
  /** All letters that match the filter, also those that are not loaded. */
  isAll: boolean
  has: (id: string) => boolean
  /** Selects or deselects one, and all from the last one to it with `extend`. */
  toggle: (index: number, extend?: boolean) => void
  selectLoaded: () => void
  selectAll: () => void
  clear: () => void
}

interface Selected {
  ids: ReadonlySet<string>
  isAll: boolean
  /** The row that was selected last: a range begins there. */
  last?: number
}

const none: Selected = { ids: new Set(), isAll: false }

/** Letters that the reader has selected. */
export function useSelection(letters: readonly SummaryView[]): Selection {
  const [{ ids, isAll }, setSelected] = useState(none)
  const clear = useCallback(() => setSelected(none), [])
  const toggle = useCallback(
    (index: number, extend = false) =>
      setSelected(({ ids, last = index }) => {
        const from = extend ? last : index
        const range = letters.slice(Math.min(from, index), Math.max(from, index) + 1)
        return { ids: toggled(ids, range, extend), isAll: false, last: index }
      }),
    [letters],
  )
  const selectLoaded = useCallback(() => {
    setSelected({ ids: new Set(letters.slice(0, maxSelected).map(({ id }) => id)), isAll: false })
  }, [letters])
  const selectAll = useCallback(() => setSelected(({ ids }) => ({ ids, isAll: true })), [])
  return useMemo(
    () => ({
      ids,
      isAll,
      has: (id) => isAll || ids.has(id),
      toggle,
      selectLoaded,
      selectAll,
      clear,
    }),
    [ids, isAll, toggle, selectLoaded, selectAll, clear],
  )
}

function toggled(
  before: ReadonlySet<string>,
  range: readonly SummaryView[],
  extend: boolean,
): ReadonlySet<string> {
  const after = new Set(before)
  const [only] = range
  if (!extend && only && after.has(only.id)) after.delete(only.id)
  else for (const { id } of range) if (after.size < maxSelected) after.add(id)
  return after
}

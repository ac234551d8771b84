import type { GroupView, InputOf } from 'redrive/api'
import { listOf, oneOf, someOf } from '../../app/search-params.ts'
import { stateNames, type State } from '../../ui/state.tsx'

export const statusNames = [
  'open',
  'regressed',
  'ignored',
  'resolved',
] as const satisfies GroupView['status'][]
const sorts = ['count', 'lastSeen', 'growth'] as const

/** The filter and the order that the address of the page has. */
export interface GroupsSearch {
  status?: GroupView['status'][]
  state?: State[]
  queue?: string[]
  sort?: NonNullable<InputOf<'listGroups'>['sort']>
}

/** The filter in an address. What is not understood is left out. */
export function parseGroupsSearch(search: Record<string, unknown>): GroupsSearch {
  const status = someOf(statusNames, search['status'])
  const state = someOf(stateNames, search['state'])
  const queue = listOf(search['queue'])
  const sort = oneOf(sorts, search['sort'])
  return {
    ...(status.length > 0 ? { status } : {}),
    ...(state.length > 0 ? { state } : {}),
    ...(queue.length > 0 ? { queue } : {}),
    ...(sort ? { sort } : {}),
  }
}

const ranges = ['hours', 'days'] as const

/** The part of a group page that its address has. */
export interface GroupSearch {
  /** The range of the trend. Default: hours. */
  range?: (typeof ranges)[number]
}

export function parseGroupSearch(search: Record<string, unknown>): GroupSearch {
  const range = oneOf(ranges, search['range'])
  return range ? { range } : {}
}

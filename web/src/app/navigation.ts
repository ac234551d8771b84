import type { IconName } from '../ui/icon.tsx'

/** An entry of the navigation, in the order of use. */
export interface NavigationEntry {
  path: string
  label: string
  icon: IconName
  /** Further paths whose pages belong to the entry. */
  also?: readonly string[]
}

export const navigation: readonly NavigationEntry[] = [
  { path: '/', label: 'Overview', icon: 'overview' },
  { path: '/letters', label: 'Letters', icon: 'letter' },
  { path: '/groups', label: 'Groups', icon: 'group' },
  { path: '/bulk-actions', label: 'Bulk actions', icon: 'bulk' },
  {
    path: '/queues',
    label: 'Queues',
    icon: 'queue',
    also: ['/pipeline', '/workers', '/mailboxes'],
  },
  { path: '/alerts', label: 'Alerts', icon: 'alert' },
  { path: '/settings', label: 'Settings', icon: 'settings' },
]

/** Pages that have no entry of their own in the navigation, for the palette. */
export const furtherPages = [
  { path: '/pipeline', label: 'Pipeline graph' },
  { path: '/workers', label: 'Workers' },
  { path: '/mailboxes', label: 'Mailboxes and loops' },
  { path: '/settings/tokens', label: 'Tokens' },
  { path: '/settings/audit', label: 'Audit log' },
] as const

export function isCurrent(entry: NavigationEntry, path: string): boolean {
  if (entry.path === '/') return path === '/'
  return [entry.path, ...(entry.also ?? [])].some(
    (prefix) => path === prefix || path.startsWith(`${prefix}/`),
  )
}

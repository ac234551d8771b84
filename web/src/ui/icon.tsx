const paths = {
  overview: 'M2 13V8m4 5V3m4 10V6m4 7v-3',
  letter: 'M2 4h12v8.5H2zm.5.5L8 8.7l5.5-4.2',
  group: 'M2 3h5v4H2zm7 0h5v4H9zM2 9h5v4H2zm7 0h5v4H9z',
  bulk: 'M2 5h9m-3-3 3 3-3 3M14 11H5m3-3-3 3 3 3',
  queue: 'M2 3.5h12M2 8h12M2 12.5h12',
  alert: 'M8 2.2 14.4 13.4H1.6zM8 6.4v3.2m0 1.6v.6',
  settings:
    'M2 4.5h6m4 0h2m-2 0a2 2 0 1 1-4 0 2 2 0 0 1 4 0M2 11.5h2m4 0h6m-6 0a2 2 0 1 1-4 0 2 2 0 0 1 4 0',
  search: 'M11.2 7a4.2 4.2 0 1 1-8.4 0 4.2 4.2 0 0 1 8.4 0M10 10l4 4',
  theme: 'M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12',
  user: 'M8 8.2a2.9 2.9 0 1 0 0-5.8 2.9 2.9 0 0 0 0 5.8M2.6 14a5.4 5.4 0 0 1 10.8 0',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  close: 'm3.5 3.5 9 9m0-9-9 9',
  down: 'm4 6 4 4 4-4',
  right: 'm6 4 4 4-4 4',
  check: 'm3 8.5 3.3 3.3L13 4.6',
  menu: 'M2 4h12M2 8h12M2 12h12',
  book: 'M8 4C6.5 2.8 4.4 2.5 2 2.5v10c2.4 0 4.5.3 6 1.5 1.5-1.2 3.6-1.5 6-1.5v-10c-2.4 0-4.5.3-6 1.5v10',
} as const
export type IconName = keyof typeof paths

/** A line icon. It is decoration: what it means is written beside it or in a label. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'more' ? 2.4 : 1.5}
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      <path d={paths[name]} />
    </svg>
  )
}

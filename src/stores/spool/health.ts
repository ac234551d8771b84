import type { SpoolStatus, StoreHealth } from '../../store.ts'

interface Circumstances {
  place: string
  durable: boolean
  /** What the store last said, or nothing. */
  trouble: string
}

/** The health of a store with that of its spool. While letters wait it is not well, whatever the store says. */
export function healthWith(
  store: StoreHealth,
  { letters, bytes, oldestAt, torn, damaged, refused, unreadable }: SpoolStatus,
  { place, durable, trouble }: Circumstances,
): StoreHealth {
  const problems = [...store.problems]
  if (letters > 0)
    problems.push(
      `${counted(letters, 'letter')} ${letters === 1 ? 'waits' : 'wait'} in the spool (${place}), the oldest since ${oldestAt}` +
        (durable ? '' : ', in memory only: they are lost if this process ends') +
        (trouble === '' ? '' : `: ${trouble}`),
    )
  if (damaged + refused > 0)
    problems.push(
      `the spool (${place}) has ${damaged} damaged and ${refused} refused files set aside: look at them, then take them away`,
    )
  if (unreadable > 0)
    problems.push(
      `the spool (${place}) has ${counted(unreadable, 'journal file')} that cannot be read: letters wait there, see to the disk or the version, then start again`,
    )
  const standing = letters === 0 ? 'empty' : `${counted(letters, 'letter')}, ${bytes} bytes`
  const ends = torn === 0 ? '' : `, ${counted(torn, 'torn end')} set aside`
  const checks = { ...store.checks, spool: `${place}: ${standing}${ends}` }
  return { ok: store.ok && problems.length === 0, checks, problems }
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

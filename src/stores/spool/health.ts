import type { SpoolStatus, StoreHealth } from '../../store.ts'

/** Adds the spool to the health of its store. Health is not ok while a letter waits. */
export function addSpoolHealth(
  store: StoreHealth,
  { letters, bytes, oldestAt, damaged, refused, unreadable }: SpoolStatus,
  place: string,
  error: string,
): StoreHealth {
  const problems = [...store.problems]
  if (letters > 0)
    problems.push(
      `${count(letters, 'letter')} ${letters === 1 ? 'waits' : 'wait'} in the spool (${place}), the oldest since ${oldestAt}` +
        (place === 'memory' ? ', in memory only: they are lost if this process ends' : '') +
        (error === '' ? '' : `: ${error}`),
    )
  if (damaged + refused > 0)
    problems.push(
      `the spool (${place}) has ${damaged} damaged and ${refused} refused files set aside: inspect and remove them`,
    )
  if (unreadable > 0)
    problems.push(
      `the spool (${place}) has ${count(unreadable, 'file')} that cannot be opened: letters wait there; check the disk and the version of Redrive, then restart`,
    )
  const contents = letters === 0 ? 'empty' : `${count(letters, 'letter')}, ${bytes} bytes`
  const checks = { ...store.checks, spool: `${place}: ${contents}` }
  return { ok: store.ok && problems.length === 0, checks, problems }
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

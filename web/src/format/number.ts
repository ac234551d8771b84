const counts = new Intl.NumberFormat('en')
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

/** `3,204` */
export function formatCount(count: number): string {
  return counts.format(count)
}

/** `3.2K`, for charts and narrow columns. */
export function formatCompact(count: number): string {
  return compact.format(count)
}

/** `1 letter`, `3,204 letters` */
export function formatAmount(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`
}

/** `98.2 %`. Values just below 100 never look like 100. */
export function formatShare(share: number): string {
  const percent = share * 100
  const shown = percent < 100 ? Math.min(percent, 99.9) : percent
  return `${shown.toFixed(shown === 100 || shown === 0 ? 0 : 1)} %`
}

const units = ['B', 'KB', 'MB', 'GB'] as const

/** `512 B`, `1.4 MB` */
export function formatBytes(bytes: number): string {
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1)
  const value = bytes / 1000 ** power
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`
}

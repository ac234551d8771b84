const width = 80
const height = 20

/** A small line of counts over time. Zero is the bottom, gaps (null) are gaps. */
export function Sparkline({
  values,
  label,
}: {
  values: readonly (number | null)[]
  label: string
}) {
  const max = Math.max(1, ...values.map((value) => value ?? 0))
  const step = width / Math.max(1, values.length - 1)
  const y = (value: number): string => (height - 1 - (value / max) * (height - 3)).toFixed(1)
  const path = values
    .map((value, index) => {
      if (value === null) return ''
      const isStart = index === 0 || values[index - 1] === null
      return `${isStart ? 'M' : 'L'}${(index * step).toFixed(1)} ${y(value)}`
    })
    .join('')
  return (
    <svg
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      <path d={`M0 ${height - 0.5}H${width}`} stroke="var(--border)" />
      <path d={path} fill="none" stroke="var(--mantine-primary-color-filled)" strokeWidth="1.5" />
    </svg>
  )
}

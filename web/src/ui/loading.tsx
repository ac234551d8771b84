import type { ReactNode } from 'react'
import { Skeleton, Stack } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { Problem } from './problem.tsx'

/** Lines in the place of rows that are still being read. */
export function SkeletonRows({ rows = 6, height = 20 }: { rows?: number; height?: number }) {
  return (
    <Stack gap={12} p={16} aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <Skeleton key={row} height={height} width={`${92 - ((row * 17) % 40)}%`} />
      ))}
    </Stack>
  )
}

/**
 * Shows the answer of a query, a skeleton until there is one, or its error. An answer that could
 * not be read again stays visible: the banner of the page says that it is old.
 */
export function Loaded<T>({
  query,
  skeleton = <SkeletonRows />,
  children,
}: {
  query: Pick<UseQueryResult<T>, 'data' | 'error' | 'refetch'>
  skeleton?: ReactNode
  children: (data: T) => ReactNode
}) {
  if (query.data !== undefined) return children(query.data)
  if (query.error) return <Problem error={query.error} onRetry={() => void query.refetch()} />
  return skeleton
}

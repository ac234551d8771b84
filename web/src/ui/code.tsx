import { lazy, Suspense } from 'react'
import { Skeleton } from '@mantine/core'

const Editor = lazy(async () => ({ default: (await import('./code-mirror.tsx')).Editor }))
const Diff = lazy(async () => ({ default: (await import('./code-mirror.tsx')).Diff }))

/** An editor. The first value counts; later ones come from the reader. */
export function CodeEditor(props: {
  label: string
  initial: string
  language: 'json' | 'text'
  onChange: (text: string) => void
}) {
  return (
    <Suspense fallback={<Skeleton height={320} />}>
      <Editor {...props} />
    </Suspense>
  )
}

/** Two versions one above the other in one column: what was removed and what was added. */
export function CodeDiff(props: {
  label: string
  before: string
  after: string
  language: 'json' | 'text'
}) {
  return (
    <Suspense fallback={<Skeleton height={160} />}>
      <Diff {...props} />
    </Suspense>
  )
}

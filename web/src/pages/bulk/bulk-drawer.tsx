import { lazy, Suspense } from 'react'
import { Drawer } from '@mantine/core'
import { SkeletonRows } from '../../ui/loading.tsx'
import { actionVerb, type BulkRequest } from './bulk-request.ts'

const BulkFlow = lazy(async () => {
  const { BulkFlow } = await import('./bulk-flow.tsx')
  return { default: BulkFlow }
})

/**
 * Plans an action on many letters, sets its limits, and runs it. No letter changes before the last
 * step. `request` undefined: the drawer is closed.
 */
export function BulkDrawer({
  request,
  onClose,
}: {
  request: BulkRequest | undefined
  onClose: () => void
}) {
  return (
    <Drawer
      opened={request !== undefined}
      onClose={onClose}
      position="right"
      size={600}
      title={request && `${actionVerb(request.action)} letters`}
    >
      {request && (
        <Suspense fallback={<SkeletonRows rows={8} />}>
          <BulkFlow key={JSON.stringify(request)} request={request} onClose={onClose} />
        </Suspense>
      )}
    </Drawer>
  )
}

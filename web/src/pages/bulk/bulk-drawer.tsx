import { lazy, Suspense, useState } from 'react'
import { Drawer } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { api } from '../../api/client.ts'
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
  const [dropped, setDropped] = useState<string>()
  const drop = useDropPlan()
  const close = (): void => {
    if (dropped !== undefined) drop(dropped)
    setDropped(undefined)
    onClose()
  }
  return (
    <Drawer
      opened={request !== undefined}
      onClose={close}
      position="right"
      size={600}
      title={request && `${actionVerb(request.action)} letters`}
    >
      {request && (
        <Suspense fallback={<SkeletonRows rows={8} />}>
          <BulkFlow
            key={JSON.stringify(request)}
            request={request}
            onClose={close}
            onPlan={setDropped}
          />
        </Suspense>
      )}
    </Drawer>
  )
}

/** Cancels a plan that nobody will run. If that fails, the plan expires by itself. */
function useDropPlan(): (id: string) => void {
  const queryClient = useQueryClient()
  return (id) =>
    void api
      .cancelBulkAction({ id })
      .catch(() => {})
      .then(() => queryClient.invalidateQueries({ queryKey: ['bulk-actions', 'list'] }))
}

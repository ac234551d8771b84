import { useMutation, useQueryClient, type UseMutationResult } from '@tanstack/react-query'
import type { GroupDetailView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { showProblem } from '../../ui/toast.ts'

type Act = () => Promise<GroupDetailView>

/** Runs an action on a group and shows the group as it is after the action. */
export function useGroupAction(
  fingerprint: string,
): UseMutationResult<GroupDetailView, unknown, Act> {
  const queryClient = useQueryClient()
  return useMutation({
    mutationFn: (act: Act) => act(),
    onSuccess: (group) => {
      if (group.fingerprint === fingerprint)
        queryClient.setQueryData(queries.group(fingerprint).queryKey, group)
      void queryClient.invalidateQueries({ queryKey: ['groups'] })
    },
    onError: showProblem,
  })
}

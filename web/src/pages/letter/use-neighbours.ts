import { useMemo } from 'react'
import { useQueryClient, type InfiniteData } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { OutputOf } from 'redrive/api'

type LetterList = InfiniteData<OutputOf<'listLetters'>>

/** Opens the letters before and after this one in the list that was read last, if it is in one. */
export function useNeighbours(id: string): { previous?: () => void; next?: () => void } {
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  return useMemo(() => {
    const lists = queryClient
      .getQueryCache()
      .findAll({ queryKey: ['letters', 'list'] })
      .sort((a, b) => b.state.dataUpdatedAt - a.state.dataUpdatedAt)
      .map(({ state }) =>
        ((state.data as LetterList | undefined)?.pages ?? []).flatMap(({ items }) => items),
      )
    const list = lists.find((items) => items.some((one) => one.id === id)) ?? []
    const index = list.findIndex((one) => one.id === id)
    const open = (other: string) => (): void =>
      void navigate({ to: '/letters/$id', params: { id: other } })
    const before = index > 0 ? list[index - 1] : undefined
    const after = index === -1 ? undefined : list[index + 1]
    return {
      ...(before ? { previous: open(before.id) } : {}),
      ...(after ? { next: open(after.id) } : {}),
    }
  }, [queryClient, navigate, id])
}

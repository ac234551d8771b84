import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  type QueryClient,
} from '@tanstack/react-query'
import { states, type InputOf, type OutputOf } from 'redrive/api'
import { api } from './client.ts'

type SeriesInput = InputOf<'getSeries'>
export type LettersInput = Omit<InputOf<'listLetters'>, 'cursor' | 'limit'>
type GroupsInput = Omit<InputOf<'listGroups'>, 'cursor' | 'limit'>

/** What the live feed does not cover is read again at this pace. */
const refreshMs = 30_000
const changesOfOthersMs = 5000
/** The first page is small, so that it is there at once; the others keep ahead of the reader. */
const lettersPerPage = 50
const lettersPerNextPage = 500
const maxFound = 1000
const groupsPerPage = 50

type LettersPage = OutputOf<'listLetters'>

/** Replaces what a list of letters has read by its present beginning. */
export async function reloadLetters(client: QueryClient, input: LettersInput): Promise<void> {
  const { queryKey } = queries.letters(input)
  const page = await api.listLetters({ partial: true, ...input, limit: lettersPerPage })
  // A page that is still being read would bring the old rows back.
  await client.cancelQueries({ queryKey })
  client.setQueryData(queryKey, { pages: [page], pageParams: [undefined] })
}

/**
 * Every read of the server, with the key of its answer. The first part of a key is what the answer
 * is about, so that the feed can mark all answers about it as outdated.
 */
export const queries = {
  caller: () =>
    queryOptions({
      queryKey: ['caller'],
      queryFn: ({ signal }) => api.getCaller({}, { signal }),
      staleTime: Infinity,
      retry: false,
    }),
  signInMethods: () =>
    queryOptions({
      queryKey: ['sign-in-methods'],
      queryFn: ({ signal }) => api.getSignInMethods({}, { signal }),
      staleTime: Infinity,
    }),
  statistics: () =>
    queryOptions({
      queryKey: ['counts', 'statistics'],
      queryFn: ({ signal }) => api.getStatistics({}, { signal }),
    }),
  metrics: () =>
    queryOptions({
      queryKey: ['counts', 'metrics'],
      queryFn: ({ signal }) => api.getMetrics({}, { signal }),
    }),
  health: () =>
    queryOptions({
      queryKey: ['health'],
      queryFn: ({ signal }) => api.getHealth({}, { signal }),
      refetchInterval: refreshMs,
    }),
  series: (input: SeriesInput) =>
    queryOptions({
      queryKey: ['series', input],
      queryFn: ({ signal }) => api.getSeries(input, { signal }),
      refetchInterval: refreshMs,
    }),
  letters: (input: LettersInput) =>
    infiniteQueryOptions({
      queryKey: ['letters', 'list', input],
      queryFn: ({ signal, pageParam }) =>
        api.listLetters(
          {
            partial: true,
            ...input,
            limit: pageParam === undefined ? lettersPerPage : lettersPerNextPage,
            ...cursorOf(pageParam),
          },
          { signal },
        ),
      initialPageParam: undefined as string | undefined,
      getNextPageParam: ({ cursor }) => cursor,
      // New letters are announced. Rows that somebody reads do not move by themselves.
      staleTime: Infinity,
      refetchOnWindowFocus: false,
    }),
  lettersOfGroup: (group: string, limit: number) =>
    queryOptions({
      queryKey: ['letters', 'one', 'of-group', group, limit],
      queryFn: ({ signal }) => api.listLetters({ group, limit }, { signal }),
    }),
  /** The best matches of a full-text search, as a list of one page. */
  foundLetters: (input: Omit<InputOf<'searchLetters'>, 'limit'>) =>
    infiniteQueryOptions({
      queryKey: ['letters', 'found', input],
      queryFn: async ({ signal }): Promise<LettersPage> => ({
        items: await api.searchLetters({ ...input, limit: maxFound }, { signal }),
      }),
      initialPageParam: undefined as string | undefined,
      getNextPageParam: ({ cursor }) => cursor,
      staleTime: Infinity,
      refetchOnWindowFocus: false,
    }),
  /** Letters that are on the screen, as they are now. */
  shownLetters: (ids: readonly string[]) =>
    queryOptions({
      queryKey: ['letters', 'one', 'shown', ids],
      queryFn: ({ signal }) =>
        api.listLetters({ ids: [...ids], state: [...states], limit: ids.length }, { signal }),
      enabled: ids.length > 0,
      placeholderData: keepPreviousData,
    }),
  letter: (id: string, reveal = false) =>
    queryOptions({
      queryKey: ['letters', 'one', id, { reveal }],
      queryFn: ({ signal }) => api.getLetter({ id, ...(reveal ? { reveal } : {}) }, { signal }),
      refetchInterval: refreshMs,
    }),
  /** All versions of a payload. They are read again when the letter has a new version. */
  payloads: (id: string, version: number, reveal = false) =>
    queryOptions({
      queryKey: ['letters', 'payloads', id, { version, reveal }],
      placeholderData: keepPreviousData,
      queryFn: ({ signal }) => api.getPayloads({ id, ...(reveal ? { reveal } : {}) }, { signal }),
    }),
  lineage: (id: string) =>
    queryOptions({
      queryKey: ['letters', 'one', id, 'lineage'],
      queryFn: ({ signal }) => api.getLineage({ id }, { signal }),
    }),
  groupOfLetter: (id: string) =>
    queryOptions({
      queryKey: ['groups', 'explanation', id],
      queryFn: ({ signal }) => api.explainGroup({ id }, { signal }),
    }),
  groups: (input: GroupsInput) =>
    infiniteQueryOptions({
      queryKey: ['groups', 'list', input],
      queryFn: ({ signal, pageParam }) =>
        api.listGroups({ ...input, limit: groupsPerPage, ...cursorOf(pageParam) }, { signal }),
      initialPageParam: undefined as string | undefined,
      getNextPageParam: ({ cursor }) => cursor,
    }),
  /** The groups that matter now, those with the most letters in the states first. */
  topGroups: (limit: number, state?: GroupsInput['state']) =>
    queryOptions({
      queryKey: ['groups', 'top', limit, state],
      queryFn: ({ signal }) =>
        api.listGroups(
          { limit, status: ['open', 'regressed'], sort: 'count', ...(state && { state }) },
          { signal },
        ),
    }),
  group: (fingerprint: string) =>
    queryOptions({
      queryKey: ['groups', 'one', fingerprint],
      queryFn: ({ signal }) => api.getGroup({ fingerprint }, { signal }),
    }),
  bulkActions: () =>
    queryOptions({
      queryKey: ['bulk-actions', 'list'],
      queryFn: ({ signal }) => api.listBulkActions({ limit: 100 }, { signal }),
    }),
  bulkAction: (id: string) =>
    queryOptions({
      queryKey: ['bulk-actions', 'one', id],
      queryFn: ({ signal }) => api.getBulkAction({ id }, { signal }),
      // The feed has progress only: another person may approve or pause the action at any time.
      refetchInterval: ({ state: { data } }) =>
        data?.endedAt === undefined ? changesOfOthersMs : false,
    }),
  bulkResults: (input: Omit<InputOf<'getBulkResults'>, 'cursor' | 'limit'>) =>
    infiniteQueryOptions({
      // Not below `bulk-actions`: long lists are not read again with each step of the progress.
      queryKey: ['bulk-results', input],
      queryFn: ({ signal, pageParam }) =>
        api.getBulkResults(
          { ...input, limit: lettersPerNextPage, ...cursorOf(pageParam) },
          { signal },
        ),
      initialPageParam: undefined as string | undefined,
      getNextPageParam: ({ cursor }) => cursor,
    }),
  /** Some results that failed, to tell why. */
  bulkFailures: (id: string) =>
    queryOptions({
      queryKey: ['bulk-actions', 'failures', id],
      queryFn: ({ signal }) =>
        api.getBulkResults({ id, outcome: 'failed', limit: maxFound }, { signal }),
    }),
  queues: () =>
    queryOptions({
      queryKey: ['queues', 'list'],
      queryFn: ({ signal }) => api.listQueues({ limit: 1000 }, { signal }),
    }),
  queue: (queue: string) =>
    queryOptions({
      queryKey: ['queues', 'one', queue],
      queryFn: ({ signal }) => api.getQueue({ queue }, { signal }),
    }),
  flowControl: () =>
    queryOptions({
      queryKey: ['queues', 'flow-control'],
      queryFn: ({ signal }) => api.getFlowControl({}, { signal }),
      refetchInterval: refreshMs,
    }),
  workers: () =>
    queryOptions({
      queryKey: ['workers'],
      queryFn: ({ signal }) => api.listWorkers({}, { signal }),
      refetchInterval: refreshMs,
    }),
  mailboxes: () =>
    queryOptions({
      queryKey: ['mailboxes'],
      queryFn: ({ signal }) => api.listMailboxes({}, { signal }),
      refetchInterval: refreshMs,
    }),
  pipeline: () =>
    queryOptions({
      queryKey: ['pipeline'],
      queryFn: ({ signal }) => api.getPipeline({}, { signal }),
      refetchInterval: refreshMs,
    }),
  alerts: () =>
    queryOptions({
      queryKey: ['alerts', 'raised'],
      queryFn: ({ signal }) => api.listAlerts({}, { signal }),
    }),
  alertHistory: () =>
    queryOptions({
      queryKey: ['alerts', 'history'],
      queryFn: ({ signal }) => api.listAlertHistory({ limit: 200 }, { signal }),
    }),
  alertDeliveries: () =>
    queryOptions({
      queryKey: ['alerts', 'deliveries'],
      queryFn: ({ signal }) => api.listAlertDeliveries({ limit: 200 }, { signal }),
    }),
  views: () =>
    queryOptions({
      queryKey: ['views'],
      queryFn: ({ signal }) => api.listViews({}, { signal }),
    }),
  tokens: () =>
    queryOptions({
      queryKey: ['tokens'],
      queryFn: ({ signal }) => api.listTokens({}, { signal }),
    }),
  settings: () =>
    queryOptions({
      queryKey: ['settings'],
      queryFn: ({ signal }) => api.getSettings({}, { signal }),
    }),
  audit: (input: Omit<InputOf<'listAudit'>, 'cursor' | 'limit'>) =>
    infiniteQueryOptions({
      queryKey: ['audit', 'list', input],
      queryFn: ({ signal, pageParam }) =>
        api.listAudit({ ...input, limit: lettersPerPage, ...cursorOf(pageParam) }, { signal }),
      initialPageParam: undefined as string | undefined,
      getNextPageParam: ({ cursor }) => cursor,
    }),
  auditReport: () =>
    queryOptions({
      queryKey: ['audit', 'report'],
      queryFn: ({ signal }) => api.verifyAudit({}, { signal }),
      enabled: false,
    }),
}

function cursorOf(pageParam: string | undefined): { cursor?: string } {
  return pageParam === undefined ? {} : { cursor: pageParam }
}

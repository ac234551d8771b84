import { useQuery } from '@tanstack/react-query'
import type { Permission } from 'redrive/api'
import { queries } from '../api/queries.ts'

/** Who is signed in. Undefined until the server has answered. */
export function useCaller() {
  return useQuery(queries.caller()).data
}

/** Whether the reader has a permission. The server checks it again. */
export function useCan(): (permission: Permission) => boolean {
  const caller = useCaller()
  return (permission) => caller?.permissions.includes(permission) ?? false
}

/** Whether the reader sees the whole store, and not only some queues or tenants. */
export function useSeesAll(): boolean {
  const caller = useCaller()
  return caller !== undefined && caller.queues === undefined && caller.tenants === undefined
}

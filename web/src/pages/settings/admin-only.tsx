import type { ReactNode } from 'react'
import { Code } from '@mantine/core'
import { useCaller, useCan, useSeesAll } from '../../app/session.tsx'
import { Empty } from '../../ui/empty.tsx'

/** Shows its content to administrators, and tells others what they lack. */
export function AdminOnly({ children }: { children: ReactNode }) {
  const can = useCan()
  const caller = useCaller()
  const seesAll = useSeesAll()
  if (can('admin') && seesAll) return children
  return (
    <Empty title="This page is for administrators">
      {can('admin') ? (
        <>You are limited to some queues or tenants, and this page is about the whole server.</>
      ) : (
        <>
          You are signed in as <bdi>{caller?.name}</bdi>, without the permission <Code>admin</Code>.
          Ask an administrator for a token that has it.
        </>
      )}
    </Empty>
  )
}

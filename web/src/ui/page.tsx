import { useEffect, type ReactNode } from 'react'
import { Group, Stack, Text, Title } from '@mantine/core'
import classes from './page.module.css'

/** The head and the body of a page. */
export function Page({
  title,
  label,
  description,
  actions,
  children,
}: {
  title: ReactNode
  /** The title in the tab of the browser, if `title` is not text. */
  label?: string
  description?: ReactNode
  actions?: ReactNode
  children: ReactNode
}) {
  const text = label ?? (typeof title === 'string' ? title : 'Redrive')
  useEffect(() => {
    document.title = `${text} · Redrive`
  }, [text])
  return (
    <Stack gap={16} className={classes.page}>
      <Group justify="space-between" align="flex-start" gap={16} className={classes.head}>
        <div className={classes.heading}>
          <Title order={1} className={classes.title}>
            {title}
          </Title>
          {description !== undefined && (
            <Text size="sm" c="dimmed" component="div">
              {description}
            </Text>
          )}
        </div>
        {actions !== undefined && <Group gap={8}>{actions}</Group>}
      </Group>
      {children}
    </Stack>
  )
}

/** A part of a page with a border and a title. */
export function Panel({
  title,
  right,
  padded = true,
  children,
}: {
  title?: ReactNode
  right?: ReactNode
  /** False: a table that reaches the border. */
  padded?: boolean
  children: ReactNode
}) {
  return (
    <section className={classes.panel} aria-label={typeof title === 'string' ? title : undefined}>
      {(title !== undefined || right !== undefined) && (
        <Group justify="space-between" className={classes.panelHead} gap={8}>
          <Title order={2} className="line">
            {title}
          </Title>
          {right}
        </Group>
      )}
      <div className={padded ? classes.padded : undefined}>{children}</div>
    </section>
  )
}

/** Two parts of a page beside each other; on a narrow screen, one below the other. */
export function Columns({ children }: { children: ReactNode }) {
  return <div className={classes.columns}>{children}</div>
}

/** Panels of one of the columns. */
export function Column({ children }: { children: ReactNode }) {
  return <div className={classes.column}>{children}</div>
}

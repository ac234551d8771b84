import { useMemo, useState } from 'react'
import { Button, Stack, Text, TextInput, UnstyledButton } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import type { PayloadView } from 'redrive/api'
import { pathOf, previewJson, searchJson } from '../../format/json-search.ts'
import { formatAmount, formatCount } from '../../format/number.ts'
import { Icon } from '../../ui/icon.tsx'
import classes from './letter.module.css'

type Json = NonNullable<PayloadView['json']> | null

const typingMs = 150

/** A JSON value as a tree that opens level by level, with a search over all of it. */
export function PayloadTree({ value }: { value: Json }) {
  const [text, setText] = useState('')
  const [wanted] = useDebouncedValue(text.trim(), typingMs)
  return (
    <Stack gap={8}>
      <TextInput
        placeholder="Search keys and values"
        aria-label="Search the payload"
        leftSection={<Icon name="search" size={14} />}
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
      {wanted === '' ? (
        <div className={classes.tree}>
          <Node name="" path="$" value={value} depth={0} />
        </div>
      ) : (
        <Matches value={value} wanted={wanted} />
      )}
    </Stack>
  )
}

function Matches({ value, wanted }: { value: Json; wanted: string }) {
  const { matches, isComplete } = useMemo(() => searchJson(value, wanted), [value, wanted])
  return (
    <div className={classes.tree} role="status">
      <Text size="xs" c="dimmed" mb={4}>
        {isComplete
          ? formatAmount(matches.length, 'match', 'matches')
          : `The first ${formatAmount(matches.length, 'match', 'matches')}: download the payload to search all of it`}
      </Text>
      {matches.map((match) => (
        <div key={match.path}>
          <span className={classes.key}>{match.path.slice(0, 300)}</span> <bdi>{match.value}</bdi>
        </div>
      ))}
    </div>
  )
}

/** Children that are shown at once. */
const perStep = 100
/** Small values are open down to this level. */
const openDepth = 2
const openSize = 20
const maxText = 500

interface NodeProps {
  name: string
  path: string
  value: Json
  depth: number
}

function Node({ name, path, value, depth }: NodeProps) {
  const isBranch = typeof value === 'object' && value !== null
  const size = isBranch ? Object.keys(value).length : 0
  const [isOpen, setOpen] = useState(depth === 0 || (depth < openDepth && size <= openSize))
  if (!isBranch || size === 0) return <Leaf name={name} path={path} value={value} />
  return (
    <div>
      <UnstyledButton
        className={classes.branch}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name={isOpen ? 'down' : 'right'} size={10} />
        {name !== '' && <span className={classes.key}>{name.slice(0, maxText)}</span>}
        <span className="dim">{previewJson(value)}</span>
      </UnstyledButton>
      {isOpen && <Children path={path} value={value} depth={depth} />}
    </div>
  )
}

function Children({ path, value, depth }: { path: string; value: object; depth: number }) {
  const [max, setMax] = useState(perStep)
  const keys = Object.keys(value)
  const isList = Array.isArray(value)
  return (
    <div className={classes.children}>
      {keys.slice(0, max).map((key) => (
        <Node
          key={key}
          name={key}
          path={isList ? `${path}[${key}]` : pathOf(path, key)}
          value={(value as Record<string, Json>)[key] ?? null}
          depth={depth + 1}
        />
      ))}
      {keys.length > max && (
        <Button variant="subtle" size="compact-xs" onClick={() => setMax(max + perStep * 5)}>
          {formatCount(keys.length - max)} more
        </Button>
      )}
    </div>
  )
}

function Leaf({ name, path, value }: Omit<NodeProps, 'depth'>) {
  const text = typeof value === 'string' ? value : previewJson(value)
  return (
    <div className={classes.leaf} title={path.slice(0, maxText)}>
      {name !== '' && <span className={classes.key}>{name.slice(0, maxText)}</span>}
      <bdi data-type={typeof value} className={classes.value}>
        {typeof value === 'string' ? `"${text.slice(0, maxText)}"` : text}
        {text.length > maxText && ` … ${formatCount(text.length)} characters`}
      </bdi>
    </div>
  )
}

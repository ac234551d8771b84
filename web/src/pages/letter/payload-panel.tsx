import { useMemo } from 'react'
import { Button, Group, SegmentedControl, Stack, Text } from '@mantine/core'
import type { LetterView, PayloadView } from 'redrive/api'
import { useCan } from '../../app/session.tsx'
import { decodeBase64, formatHex } from '../../format/hex.ts'
import { formatBytes, formatCount } from '../../format/number.ts'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Panel } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import classes from './letter.module.css'
import type { PayloadViewName } from './letter-search.ts'
import { payloadText } from './payload-text.ts'
import { PayloadTree } from './payload-tree.tsx'

/** What is drawn at most: more would freeze the page. The download has everything. */
const maxText = 200_000
const maxHexBytes = 16_384

interface Props {
  letter: LetterView
  view: PayloadViewName | undefined
  onView: (view: PayloadViewName) => void
  isRevealed: boolean
  onReveal: () => void
}

/** The payload as tree, text or bytes. */
export function PayloadPanel({ letter, view, onView, isRevealed, onReveal }: Props) {
  const { payload } = letter
  const bytes = useMemo(() => bytesOf(payload), [payload])
  const views = viewsOf(payload)
  const shown = view !== undefined && views.includes(view) ? view : views[0]
  return (
    <Panel
      title="Payload"
      right={
        bytes && (
          <Group gap={8}>
            <SegmentedControl
              size="xs"
              aria-label="Show the payload as"
              data={views.map((name) => ({ value: name, label: labels[name] }))}
              {...(shown === undefined ? {} : { value: shown })}
              onChange={onView}
            />
            <CopyButton text={() => payloadText(payload) ?? payload.base64 ?? ''} />
            <Button variant="default" onClick={() => download(letter, bytes)}>
              Download
            </Button>
          </Group>
        )
      }
    >
      <Stack gap={12}>
        <PayloadFacts payload={payload} />
        <Hidden letter={letter} isRevealed={isRevealed} onReveal={onReveal} />
        {shown === 'tree' && payload.json !== undefined && <PayloadTree value={payload.json} />}
        {shown === 'text' && <PayloadText text={payloadText(payload) ?? ''} />}
        {shown === 'hex' && bytes && <Hex bytes={bytes} />}
      </Stack>
    </Panel>
  )
}

const labels: Record<PayloadViewName, string> = { tree: 'Tree', text: 'Text', hex: 'Hex' }

function viewsOf({ json, text, base64 }: PayloadView): PayloadViewName[] {
  if (json !== undefined) return ['tree', 'text', 'hex']
  if (text !== undefined) return ['text', 'hex']
  return base64 === undefined ? [] : ['hex']
}

function PayloadFacts({ payload }: { payload: PayloadView }) {
  const { contentType, size, version, restOf, lossy, reference } = payload
  return (
    <Text size="sm" c="dimmed">
      <bdi>{contentType.slice(0, 200)}</bdi>, {formatBytes(size)}, version {version}
      {restOf !== undefined && `, the rest of version ${restOf} after a partial result`}
      {lossy === true && '. Some values could not be stored exactly: markers show where'}
      {reference !== undefined && '. The body is stored elsewhere'}
    </Text>
  )
}

/** Says what of the payload is not shown, and how to see it. */
function Hidden({ letter, isRevealed, onReveal }: Omit<Props, 'view' | 'onView'>) {
  const can = useCan()
  const { hidden, payload } = letter
  if (payload.erased !== undefined)
    return (
      <Empty title="The content was erased">
        Somebody erased the data of this person <Time at={payload.erased} />. It cannot be restored.
      </Empty>
    )
  if (hidden)
    return (
      <Empty title="The content is hidden">
        Reading payloads needs the permission payload:read. Ask an administrator of this server.
      </Empty>
    )
  if (payload.keyId !== undefined && payload.base64 !== undefined)
    return (
      <Text size="sm" c="dimmed">
        The payload is encrypted with the key {payload.keyId}, which this server does not have.
      </Text>
    )
  if (!payload.redacted) return null
  return (
    <Group gap={8} justify="space-between" className={classes.notice} role="note">
      <Text size="sm">
        {isRevealed
          ? 'Parts of the payload were removed before it was stored, so the letter cannot run.'
          : 'Parts of this letter are hidden by the redaction rules of its queue.'}
      </Text>
      {!isRevealed && can('payload:reveal') && (
        <Button
          variant="default"
          title="Shows everything on this page. The audit log records that you did this."
          onClick={onReveal}
        >
          Reveal (audited)
        </Button>
      )}
    </Group>
  )
}

function PayloadText({ text }: { text: string }) {
  return (
    <>
      <pre className={classes.text}>{text.slice(0, maxText)}</pre>
      {text.length > maxText && (
        <Text size="sm" c="dimmed">
          The first {formatCount(maxText)} of {formatCount(text.length)} characters. Download the
          payload to see all of it.
        </Text>
      )}
    </>
  )
}

function Hex({ bytes }: { bytes: Uint8Array }) {
  return (
    <>
      <pre className={classes.hex}>{formatHex(bytes, maxHexBytes)}</pre>
      {bytes.length > maxHexBytes && (
        <Text size="sm" c="dimmed">
          The first {formatBytes(maxHexBytes)} of {formatBytes(bytes.length)}. Download the payload
          to see all of it.
        </Text>
      )}
    </>
  )
}

/** JSON is shown as this page writes it: the same value, perhaps with other spaces. */
function bytesOf(payload: PayloadView): Uint8Array<ArrayBuffer> | undefined {
  const { json, text, base64 } = payload
  if (base64 !== undefined) return decodeBase64(base64)
  const shown = json === undefined ? text : JSON.stringify(json)
  return shown === undefined ? undefined : new TextEncoder().encode(shown)
}

function download({ id, payload }: LetterView, bytes: Uint8Array<ArrayBuffer>): void {
  const extension =
    payload.json === undefined ? (payload.text === undefined ? 'bin' : 'txt') : 'json'
  const link = document.createElement('a')
  // The type of the letter is not used: a browser must never open the payload as a page.
  const blob = new Blob([bytes], { type: 'application/octet-stream' })
  link.href = URL.createObjectURL(blob)
  link.download = `letter-${id.replaceAll(/[^\w-]/g, '_').slice(0, 100)}.${extension}`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

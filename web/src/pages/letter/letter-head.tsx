import { useMemo } from 'react'
import { ActionIcon, Button, Group, Menu, Text, Tooltip } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import type { LetterView } from 'redrive/api'
import { useCan } from '../../app/session.tsx'
import { useShortcuts } from '../../app/shortcuts.tsx'
import { toCurl, toTest } from '../../format/letter-code.ts'
import { Icon } from '../../ui/icon.tsx'
import { showDone } from '../../ui/toast.ts'
import { actionsOf, primaryOf, type ActionName } from './actions.ts'
import { useLetterActions } from './use-letter-actions.tsx'

/** Actions that have a button of their own, if the state allows them. */
const withButton: readonly ActionName[] = ['review', 'edit']

/** The actions on a letter: the most likely one first, the rest in a menu. */
export function LetterButtons({ letter, isRevealed }: { letter: LetterView; isRevealed: boolean }) {
  const can = useCan()
  const { run, isRunning, dialog } = useLetterActions(letter, isRevealed)
  const actions = actionsOf(letter, can)
  const primary = primaryOf(actions)
  const buttons = actions.filter(({ name }) => withButton.includes(name))
  const inMenu = actions.filter((one) => one !== primary && !buttons.includes(one))
  useShortcuts(
    useMemo(
      () =>
        actions.flatMap(({ name, keys, label }) =>
          keys === undefined ? [] : [{ keys, label: label.replace('…', ''), run: () => run(name) }],
        ),
      // oxlint-disable-next-line react/exhaustive-deps -- a version has one set of actions
      [letter.id, letter.version, actions.length],
    ),
  )
  return (
    <>
      {buttons.map((action) => (
        <Tooltip key={action.name} label={action.effect}>
          <Button variant="default" onClick={() => run(action.name)}>
            {action.label}
          </Button>
        </Tooltip>
      ))}
      {primary && (
        <Tooltip label={primary.effect}>
          <Button loading={isRunning} onClick={() => run(primary.name)}>
            {primary.label}
          </Button>
        </Tooltip>
      )}
      <Menu position="bottom-end" width={320}>
        <Menu.Target>
          <ActionIcon variant="default" size={30} aria-label="More actions">
            <Icon name="more" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {inMenu.map(({ name, label, effect, keys }) => (
            <Menu.Item
              key={name}
              onClick={() => run(name)}
              {...(name === 'remove' ? { color: 'red' } : {})}
              rightSection={keys && <Text size="xs">{keys}</Text>}
            >
              {label}
              <Text size="xs" c="dimmed">
                {effect}
              </Text>
            </Menu.Item>
          ))}
          {inMenu.length > 0 && !letter.hidden && <Menu.Divider />}
          {!letter.hidden && <CopyItems letter={letter} />}
        </Menu.Dropdown>
      </Menu>
      {dialog}
    </>
  )
}

function CopyItems({ letter }: { letter: LetterView }) {
  const clipboard = useClipboard()
  const copy = (text: string, message: string) => (): void => {
    clipboard.copy(text)
    showDone(message)
  }
  return (
    <>
      <Menu.Item onClick={() => copy(toTest(letter), 'The test is in the clipboard.')()}>
        Copy as test
        <Text size="xs" c="dimmed">
          A vitest test that runs your handler with this payload.
        </Text>
      </Menu.Item>
      <Menu.Item
        onClick={() => copy(toCurl(letter, location.origin), 'The command is in the clipboard.')()}
      >
        Copy as curl
        <Text size="xs" c="dimmed">
          A command that captures this failure again over HTTP.
        </Text>
      </Menu.Item>
    </>
  )
}

/** Moves to the letters beside this one in the list that it was opened from. */
export function Neighbours({
  onPrevious,
  onNext,
}: {
  onPrevious?: () => void
  onNext?: () => void
}) {
  if (!onPrevious && !onNext) return null
  return (
    <Group gap={4}>
      <Button variant="default" px={8} disabled={!onPrevious} onClick={onPrevious} title="Key: k">
        Previous
      </Button>
      <Button variant="default" px={8} disabled={!onNext} onClick={onNext} title="Key: j">
        Next
      </Button>
    </Group>
  )
}

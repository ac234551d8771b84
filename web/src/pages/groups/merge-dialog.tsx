import { useState } from 'react'
import { Button, Group, Modal, MultiSelect, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useInfiniteQuery } from '@tanstack/react-query'
import { queries } from '../../api/queries.ts'
import { formatAmount } from '../../format/number.ts'
import { shortenId } from '../../format/text.ts'

/** Asks which groups become part of this one. */
export function MergeDialog({
  fingerprint,
  onMerge,
  onClose,
}: {
  fingerprint: string
  onMerge: (others: string[]) => void
  onClose: () => void
}) {
  const { data } = useInfiniteQuery(queries.groups({}))
  const [chosen, setChosen] = useState<string[]>([])
  const [isListOpen, list] = useDisclosure()
  const options = (data?.pages ?? [])
    .flatMap(({ items }) => items)
    .filter((one) => one.fingerprint !== fingerprint)
    .map((one) => ({
      value: one.fingerprint,
      label: `${one.title.slice(0, 100)} (${shortenId(one.fingerprint)})`,
    }))
  return (
    <Modal opened onClose={onClose} title="Merge groups into this one">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onMerge(chosen)
        }}
      >
        <Stack gap={12}>
          <Text size="sm">
            Letters of the chosen groups belong to this group, also later ones. A merge can be
            undone with Split.
          </Text>
          <MultiSelect
            label="Groups"
            data={options}
            value={chosen}
            onChange={setChosen}
            searchable
            limit={50}
            nothingFoundMessage="No other group"
            // A list that stays open after a choice covers the button of the dialog.
            onOptionSubmit={list.close}
            dropdownOpened={isListOpen}
            onDropdownOpen={list.open}
            onDropdownClose={list.close}
            data-autofocus
          />
          <Group justify="flex-end" gap={8}>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" disabled={chosen.length === 0}>
              Merge {formatAmount(chosen.length, 'group')}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

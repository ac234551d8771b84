import { Code, Group, Stack, Tabs, Text } from '@mantine/core'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Panel } from '../../ui/page.tsx'
import { examplesFor } from '../../format/examples.ts'

/** Shows how to send the first letter. The page shows the letter as soon as it arrives. */
export function FirstLetter() {
  const examples = examplesFor(location.origin)
  return (
    <Panel title="Nothing has failed yet">
      <Stack gap={16}>
        <Text size="sm">
          Redrive keeps what failed until it is resolved. Send a first letter with one of these
          examples: this page shows it at once.
        </Text>
        <Tabs defaultValue={examples[0]!.name} keepMounted={false}>
          <Tabs.List>
            {examples.map(({ name }) => (
              <Tabs.Tab key={name} value={name}>
                {name}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {examples.map(({ name, code }) => (
            <Tabs.Panel key={name} value={name} pt={12}>
              <Stack gap={8}>
                <Code block tabIndex={0}>
                  {code}
                </Code>
                <Group>
                  <CopyButton text={code} label="Copy the example" />
                </Group>
              </Stack>
            </Tabs.Panel>
          ))}
        </Tabs>
        <Text size="sm" c="dimmed" role="status">
          Waiting for the first letter …
        </Text>
      </Stack>
    </Panel>
  )
}

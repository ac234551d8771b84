import {
  createContext,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useState,
  type ReactNode,
} from 'react'
import { Kbd, Modal, Table } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'

/** A key and what it does on this page: `r` retries the letter. */
export interface Shortcut {
  keys: string
  label: string
  run: (event: KeyboardEvent) => void
}

interface Registry {
  add: (shortcuts: readonly Shortcut[]) => () => void
}

const RegistryContext = createContext<Registry>({ add: () => () => {} })

const everywhere: readonly Omit<Shortcut, 'run'>[] = [
  { keys: 'mod+K', label: 'Find a page, letter, group or queue' },
  { keys: '/', label: 'Search' },
  { keys: 'shift+?', label: 'Show this list' },
]

/** Keys that were pressed while a dialog or a menu covered the page. */
const covered = new WeakSet<Event>()

/** Looks before the dialog does: the key that closes it is still a key of the dialog. */
function watchCoveredKeys(): () => void {
  const look = (event: Event): void => {
    if (document.querySelector('[role="dialog"], [role="menu"]')) covered.add(event)
  }
  window.addEventListener('keydown', look, { capture: true })
  return () => window.removeEventListener('keydown', look, { capture: true })
}

/** Keyboard shortcuts of the page, and the dialog that lists them. */
export function ShortcutsProvider({ children }: { children: ReactNode }) {
  const [lists, setLists] = useState<readonly (readonly Shortcut[])[]>([])
  const [isOpen, setOpen] = useState(false)
  useLayoutEffect(watchCoveredKeys, [])
  useHotkeys([['shift+?', () => setOpen(true)]])
  const registry = useMemo<Registry>(
    () => ({
      add: (list) => {
        setLists((all) => [...all, list])
        return () => setLists((all) => all.filter((one) => one !== list))
      },
    }),
    [],
  )
  const shown = [...lists.flat(), ...everywhere]
  return (
    <RegistryContext.Provider value={registry}>
      {children}
      <Modal opened={isOpen} onClose={() => setOpen(false)} title="Keyboard shortcuts">
        <Table>
          <Table.Tbody>
            {shown.map(({ keys, label }) => (
              <Table.Tr key={`${keys} ${label}`}>
                <Table.Td w={120}>
                  <Keys keys={keys} />
                </Table.Td>
                <Table.Td>{label}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Modal>
    </RegistryContext.Provider>
  )
}

/** Keys for people: `mod+K` is Ctrl K, `shift+?` is ?. */
export function Keys({ keys }: { keys: string }) {
  const names = keys === 'shift+?' ? ['?'] : keys.split('+').map(nameOf)
  return (
    <>
      {names.map((name) => (
        <Kbd key={name} size="xs" mr={4}>
          {name}
        </Kbd>
      ))}
    </>
  )
}

function nameOf(key: string): string {
  if (key !== 'mod') return key
  return navigator.userAgent.includes('Mac') ? '⌘' : 'Ctrl'
}

/**
 * Adds shortcuts while the component is shown. A dialog or a menu above the page has the keys
 * instead. The list must be memoized.
 */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const registry = useContext(RegistryContext)
  useEffect(() => registry.add(shortcuts), [registry, shortcuts])
  useHotkeys(
    shortcuts.map(({ keys, run }) => [keys, (event) => void (covered.has(event) || run(event))]),
  )
}

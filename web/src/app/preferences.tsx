import { createContext, useContext, useMemo, useState, type ReactNode } from 'react'
import { useInterval, useLocalStorage } from '@mantine/hooks'
import type { TimeZone } from '../format/time.ts'

interface Preferences {
  zone: TimeZone
  setZone: (zone: TimeZone) => void
}

const PreferencesContext = createContext<Preferences>({ zone: 'local', setZone: () => {} })
const NowContext = createContext(0)

const tickMs = 1000

/** Choices of the reader that this browser keeps, and the current time for relative times. */
export function PreferencesProvider({ children }: { children: ReactNode }) {
  const [zone, setZone] = useLocalStorage<TimeZone>({
    key: 'redrive-time-zone',
    defaultValue: 'local',
    getInitialValueInEffect: false,
  })
  const [now, setNow] = useState(() => Date.now())
  useInterval(() => setNow(Date.now()), tickMs, { autoInvoke: true })
  const preferences = useMemo(() => ({ zone, setZone }), [zone, setZone])
  return (
    <PreferencesContext.Provider value={preferences}>
      <NowContext.Provider value={now}>{children}</NowContext.Provider>
    </PreferencesContext.Provider>
  )
}

export function usePreferences(): Preferences {
  return useContext(PreferencesContext)
}

/** The time now, in milliseconds. It changes every second. */
export function useNow(): number {
  return useContext(NowContext)
}

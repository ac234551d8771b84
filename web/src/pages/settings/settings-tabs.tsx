import { PageTabs } from '../../ui/tabs.tsx'

const tabs = [
  { path: '/settings', label: 'Configuration' },
  { path: '/settings/tokens', label: 'Tokens' },
  { path: '/settings/audit', label: 'Audit log' },
] as const

export function SettingsTabs() {
  return <PageTabs label="Settings" tabs={tabs} />
}

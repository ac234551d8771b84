import { PageTabs } from '../../ui/tabs.tsx'

const tabs = [
  { path: '/queues', label: 'Queues' },
  { path: '/pipeline', label: 'Pipeline' },
  { path: '/workers', label: 'Workers' },
  { path: '/mailboxes', label: 'Mailboxes' },
] as const

export function QueueTabs() {
  return <PageTabs label="Queues, pipeline, workers and mailboxes" tabs={tabs} />
}

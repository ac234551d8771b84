import { AppShell, Badge, Burger, Button, Group, UnstyledButton } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useRouterState } from '@tanstack/react-router'
import { queries } from '../api/queries.ts'
import { formatCompact } from '../format/number.ts'
import { Icon } from '../ui/icon.tsx'
import classes from './layout.module.css'
import { isCurrent, navigation } from './navigation.ts'
import { openPalette, Palette } from './palette.tsx'
import { useSeesAll } from './session.tsx'
import { Keys } from './shortcuts.tsx'
import { StaleBanner } from './stale-banner.tsx'
import { StoreHealth } from './store-health.tsx'
import { ThemeMenu, UserMenu, ZoneSwitch } from './top-menus.tsx'

/** Navigation, top bar and the current page. */
export function Layout() {
  const [isOpen, { toggle, close }] = useDisclosure()
  const path = useRouterState({ select: ({ location }) => location.pathname })
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 184, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding={{ base: 12, sm: 24 }}
    >
      <a href="#content" className={classes.skip}>
        Skip to the content
      </a>
      <AppShell.Header className={classes.header}>
        <Group gap={8} wrap="nowrap">
          <Burger
            opened={isOpen}
            onClick={toggle}
            hiddenFrom="sm"
            size="sm"
            aria-label="Navigation"
          />
          <Link to="/" className={classes.brand} aria-label="Redrive" onClick={close}>
            <img src="/icon.svg" width={20} height={20} alt="" />
            <span>Redrive</span>
          </Link>
        </Group>
        <Button
          variant="default"
          className={classes.search}
          leftSection={<Icon name="search" size={14} />}
          rightSection={
            <span className={classes.keys}>
              <Keys keys="mod+K" />
            </span>
          }
          justify="space-between"
          onClick={openPalette}
          title="Search letters, groups, queues and pages"
        >
          <span className={classes.searchText}>Search</span>
        </Button>
        <Group gap={4} wrap="nowrap">
          <StoreHealth />
          <ZoneSwitch />
          <ThemeMenu />
          <UserMenu />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className={classes.navbar}>
        <nav aria-label="Pages">
          {navigation.map((entry) => (
            <UnstyledButton
              key={entry.path}
              component={Link}
              to={entry.path}
              className={classes.entry}
              aria-current={isCurrent(entry, path) ? 'page' : undefined}
              onClick={close}
            >
              <Icon name={entry.icon} />
              <span>{entry.label}</span>
              <EntryCount path={entry.path} />
            </UnstyledButton>
          ))}
        </nav>
        <a href="/docs/" className={classes.entry} target="_blank" rel="noreferrer">
          <Icon name="book" />
          <span>Documentation</span>
        </a>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1} className={classes.main}>
        <StaleBanner />
        <Outlet />
      </AppShell.Main>
      <Palette />
    </AppShell>
  )
}

/** The number of raised alerts or of running bulk actions, beside their entry. */
function EntryCount({ path }: { path: string }) {
  const seesAll = useSeesAll()
  const { data: alerts } = useQuery({ ...queries.alerts(), enabled: path === '/alerts' && seesAll })
  const { data: bulk } = useQuery({ ...queries.bulkActions(), enabled: path === '/bulk-actions' })
  const count =
    path === '/alerts'
      ? alerts?.length
      : path === '/bulk-actions'
        ? bulk?.filter(({ state }) => state === 'running').length
        : undefined
  if (!count) return null
  return (
    <Badge size="sm" ml="auto" color={path === '/alerts' ? 'red' : 'accent'}>
      {formatCompact(count)}
    </Badge>
  )
}

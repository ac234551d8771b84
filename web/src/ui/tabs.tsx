import { Link } from '@tanstack/react-router'
import classes from './tabs.module.css'

export interface PageTab {
  path: string
  label: string
}

/** Pages that belong together, each with an address of its own. */
export function PageTabs({ label, tabs }: { label: string; tabs: readonly PageTab[] }) {
  return (
    <nav className={classes.tabs} aria-label={label}>
      {tabs.map((tab) => (
        <Link
          key={tab.path}
          to={tab.path}
          className={classes.tab}
          activeOptions={{ exact: true, includeSearch: false }}
        >
          {tab.label}
        </Link>
      ))}
    </nav>
  )
}

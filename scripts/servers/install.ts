import { findProgram, isRoot, run } from './machine.ts'
import type { Server } from './server.ts'

/**
 * Programs that some tests need and their packages: to trace system calls, to create certificates,
 * to test alert rules, to open pages.
 */
const tools = {
  strace: 'strace',
  openssl: 'openssl',
  promtool: 'prometheus',
  chromium: 'chromium',
}

/** What may have to be installed: system packages, then the files of `fetch`. */
export type Need = Pick<Server, 'name' | 'packages' | 'lacks' | 'fetch'>

/**
 * Installs what the servers need, where possible. Returns a reason and a fix for each one that
 * failed.
 */
export function install(chosen: readonly Need[]): Map<string, string> {
  const lacking = new Map<string, string>()
  const together = [
    ...chosen.filter((server) => server.lacks()).flatMap((server) => server.packages),
    ...Object.entries(tools).flatMap(([tool, name]) => (findProgram(tool) ? [] : [name])),
  ]
  const failed = together.length > 0 ? installPackages(together) : undefined
  for (const server of chosen) {
    // An unavailable package must not prevent the installation of the others.
    const reason = failed && server.lacks() ? installPackages(server.packages) : undefined
    const lack = server.lacks()
    const error =
      lack === undefined
        ? fetchRest(server)
        : `${lack}; ${reason ?? 'its package does not contain it'}`
    if (error !== undefined) lacking.set(server.name, error)
  }
  return lacking
}

function fetchRest(server: Need): string | undefined {
  try {
    server.fetch?.()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** Returns undefined on success, otherwise instructions. */
function installPackages(packages: readonly string[]): string | undefined {
  const names = [...new Set(packages)]
  const command = `apt-get install ${names.join(' ')}`
  if (!findProgram('apt-get')) return `install it (on Debian: ${command})`
  if (!isRoot) return `as root: ${command}`
  console.log(`Installing ${names.join(', ')} …`)
  // At runlevel 1, or without systemd, packages do not start their servers.
  const environment = ['DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1', 'SYSTEMD_OFFLINE=1']
  const apt = (...args: string[]): string =>
    run('env', [...environment, 'apt-get', '-qq', '-y', ...args])
  try {
    apt('update')
    apt('install', '--no-install-recommends', ...names)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

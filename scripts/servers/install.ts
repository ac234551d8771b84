import { findProgram, isRoot, run } from './machine.ts'
import type { Server } from './server.ts'

/**
 * Programs that some tests use, and are skipped without, and the packages that have them: to see the order of system calls, to make
 * certificates, to try alert rules.
 */
const tools = { strace: 'strace', openssl: 'openssl', promtool: 'prometheus' }

/** What may have to be installed: packages of the system, then what `fetch` brings. */
export type Need = Pick<Server, 'name' | 'packages' | 'lacks' | 'fetch'>

/** Installs what the servers lack, where we may. Gives, for each that cannot be had, the reason and the cure. */
export function install(chosen: readonly Need[]): Map<string, string> {
  const lacking = new Map<string, string>()
  const together = [
    ...chosen.filter((server) => server.lacks()).flatMap((server) => server.packages),
    ...Object.entries(tools).flatMap(([tool, name]) => (findProgram(tool) ? [] : [name])),
  ]
  const failed = together.length > 0 ? installPackages(together) : undefined
  for (const server of chosen) {
    // A package that is not to be had must not keep the others away.
    const reason = failed && server.lacks() ? installPackages(server.packages) : undefined
    const lack = server.lacks()
    const error =
      lack === undefined ? fetchRest(server) : `${lack}; ${reason ?? 'its package lacks it'}`
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

/** Gives nothing when it worked, else what to do. */
function installPackages(packages: readonly string[]): string | undefined {
  const names = [...new Set(packages)]
  const command = `apt-get install ${names.join(' ')}`
  if (!findProgram('apt-get')) return `install it (on Debian: ${command})`
  if (!isRoot) return `as root: ${command}`
  console.log(`Installing ${names.join(', ')} …`)
  // At runlevel 1, or where systemd is not to be talked to, no package starts its own server.
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

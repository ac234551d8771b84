import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, launch, postgresAccount } from './machine.ts'
import { isPostgresReady, lacksPostgres, postgresUrl } from './postgres.ts'
import type { Server } from './server.ts'

/** All clients are the user postgres; transaction pooling. */
const configuration = (port: number, postgresPort: number): string => `[databases]
* = host=127.0.0.1 port=${postgresPort} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 20
`

export const pgbouncer: Server = {
  name: 'pgbouncer',
  variable: 'REDRIVE_TEST_PGBOUNCER_URL',
  ports: [26432],
  after: ['postgres'],
  packages: ['pgbouncer'],
  lacks: () =>
    lacksPostgres() ?? (findProgram('pgbouncer') ? undefined : 'PgBouncer is not installed'),
  start: ({ folder, log, ports, portsOf }) => {
    const account = postgresAccount()
    const ini = join(folder, 'pgbouncer.ini')
    writeFileSync(ini, configuration(ports[0]!, portsOf('postgres')[0]!))
    if (account.uid !== undefined) chownSync(folder, account.uid, account.gid!)
    return [launch({ file: findProgram('pgbouncer')!, args: [ini], folder, account }, log)]
  },
  stopSignal: 'SIGTERM',
  ready: ([port]) => isPostgresReady(port!),
  seconds: 20,
  url: ([port]) => postgresUrl(port!),
}

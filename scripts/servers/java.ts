// Servers that come as jars of Maven Central.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, home, run } from './machine.ts'

/** What such a server is made of: `group:artifact:version`, with all that those depend on. */
export interface Jars {
  /** Names the folder, so that another version is another folder. */
  readonly name: string
  readonly artifacts: readonly string[]
}

export const javaPackages: readonly string[] = ['default-jre-headless', 'maven']

const folderOf = ({ name }: Jars): string => join(home, name)

/** For `java -cp`: all jars of the folder. */
export const classPath = (jars: Jars): string => join(folderOf(jars), '*')

/** What is lacking to fetch the jars and to run them. */
export function lacksJava(jars: Jars): string | undefined {
  if (!findProgram('java')) return 'Java is not installed'
  return existsSync(folderOf(jars)) || findProgram('mvn') ? undefined : 'Maven is not installed'
}

/** The same for those who only start it, and fetch nothing. */
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

/** Maven copies the jars into one folder, once. A checksum that does not match is an error. */
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

/** Log4j's settings: everything goes to the output, which goes to the log file. */
export const logging = `appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c{1.} %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
`

// npm run servers -- install|start|stop|status [name…]
import { choose, start, status, stop, type Outcome } from './lifecycle.ts'
import { install } from './install.ts'
import { home } from './machine.ts'

const [command = '', ...names] = process.argv.slice(2)

function show(outcomes: readonly Outcome[]): void {
  const width = Math.max(...outcomes.map((outcome) => outcome.name.length))
  for (const outcome of outcomes) {
    const name = outcome.name.padEnd(width)
    if ('missing' in outcome) console.log(`${name}  missing: ${outcome.missing}`)
    else console.log(`${name}  ${outcome.url}${outcome.started ? '  (started)' : ''}`)
  }
  if (outcomes.some((outcome) => 'missing' in outcome)) process.exitCode = 1
}

try {
  if (command === 'install') {
    const lacking = install(choose(names))
    for (const [name, reason] of lacking) console.log(`${name}: ${reason}`)
    if (lacking.size > 0) process.exitCode = 1
    else console.log(`Everything is installed; jars are in ${home}`)
  } else if (command === 'start') show(await start(names))
  else if (command === 'stop') {
    const stopped = await stop(names)
    console.log(stopped.length > 0 ? `stopped ${stopped.join(', ')}` : 'nothing to stop')
  } else if (command === 'status') show(await status(names))
  else {
    console.error('usage: npm run servers -- install|start|stop|status [name…]')
    process.exitCode = 2
  }
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}

// A process that receives messages and never settles them. It reports that, and waits to be killed.
import { rabbitmqMailbox } from '../../../src/mailboxes/rabbitmq/rabbitmq.ts'

const [url = '', name = '', count = '1'] = process.argv.slice(2)
const mailbox = rabbitmqMailbox({ url, name })
await mailbox.open()
let held = 0
while (held < Number(count))
  held += (await mailbox.receive({ max: 10, waitSeconds: 20, visibilitySeconds: 3600 })).length
process.stdout.write(`held ${held}\n`)
await mailbox.receive({ waitSeconds: 3600 })

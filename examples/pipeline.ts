import { Admin, Producer } from '@platformatic/kafka'
import { DeadLetterQueue } from '../src/index.ts'
import { aStream, Pipeline, readGraphs, writeStream } from '../src/pipeline/index.ts'

// Usage: node examples/pipeline.ts localhost:9092 [cluster name]
const [kafka = 'localhost:9092', cluster = 'example'] = process.argv.slice(2)

const yaml = `
cluster_id: ${cluster}
kafka: kafka://${kafka}
graphs:
  - graph_id: documents
    nodes:
      - node_id: parser
        module: { function: parse }
        dlq_config: { max_retries: 2, retry_backoff: 100ms }
      - node_id: indexer
        module: { function: index }
    edges:
      - { from: parser, to: indexer }
`

const indexed = Promise.withResolvers<void>()
let calls = 0
let isUp = false

const pipeline = await Pipeline.open(readGraphs(yaml), {
  functions: {
    parse: async ({ document }) => {
      calls += 1
      if (!isUp)
        throw Object.assign(new Error('the parser is unreachable'), { code: 'ECONNREFUSED' })
      const words = Buffer.from(document!.body).toString().split(' ')
      return { success: true, document: { body: Buffer.from(JSON.stringify(words)) } }
    },
    index: async ({ document, stream }) => {
      console.log(`${stream.streamId} is indexed: ${Buffer.from(document!.body).toString()}`)
      indexed.resolve()
    },
  },
})
await pipeline.start() // until pipeline.stop()

const dlq = await DeadLetterQueue.open('sqlite:letters.db')
const letters = pipeline.deadLetters(dlq)
const kept = new Promise<string>((resolve) =>
  dlq.on('captured', ({ letter }) => resolve(letter.id)),
)
await letters.start()
dlq.start()

// A document is sent while the parser is unreachable.
const clients = { clientId: 'example', bootstrapBrokers: kafka.split(',') }
const producer = new Producer(clients)
const [parser] = pipeline.graphs.nodes
const stream = aStream({
  streamId: 'report-7',
  content: { case: 'document', value: { id: 'report', body: Buffer.from('nothing is lost') } },
})
const record = { topic: parser!.inputTopic, key: Buffer.from('acme'), value: writeStream(stream) }
await producer.send({ messages: [record], acks: -1 })

const id = await kept
const letter = await dlq.get(id)
console.log(`after ${calls} calls ${letter?.queue} has a letter: ${letter?.failure.name}`)

isUp = true
await dlq.retry(id, 'ann')
await indexed.promise
await dlq.stop()
console.log(`the letter is ${(await dlq.get(id))?.state}`)

await letters.stop()
await pipeline.stop()
await dlq.close()
await producer.close()
const admin = new Admin(clients)
const topics = (await admin.listTopics()).filter((topic) => topic.includes(cluster))
await admin.deleteTopics({ topics })
await admin.close()

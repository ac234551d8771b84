import Fastify, { type FastifyInstance } from 'fastify'
import { DatabaseSync } from 'node:sqlite'
import { Pool } from 'pg'
import { systemClock } from '../../src/clock/clock.ts'

/*
 * An HTTP server without Redrive: each POST /one inserts its body as one row, and each POST /lines
 * inserts a row for each line in one transaction. It checks no token and no field.
 *
 * node bench/yardsticks/bare-server.ts sqlite:FILE|postgres://…
 */

interface Rows {
  insert(payload: string): Promise<void>
  insertAll(payloads: readonly string[]): Promise<void>
}

function sqliteRows(path: string): Rows {
  const db = new DatabaseSync(path)
  db.exec(`PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 2000;
    CREATE TABLE items (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, payload TEXT NOT NULL) STRICT`)
  const [begin, commit] = [db.prepare('BEGIN IMMEDIATE'), db.prepare('COMMIT')]
  const statement = db.prepare('INSERT INTO items (id, payload) VALUES (?, ?)')
  return {
    insert: async (payload) => void statement.run(systemClock.id(), payload),
    insertAll: async (payloads) => {
      begin.run()
      for (const payload of payloads) statement.run(systemClock.id(), payload)
      commit.run()
    },
  }
}

async function postgresRows(url: string): Promise<Rows> {
  const schema = new URL(url).searchParams.get('schema')!
  const bare = new URL(url)
  bare.searchParams.delete('schema')
  const pool = new Pool({ connectionString: bare.href })
  await pool.query(`CREATE SCHEMA "${schema}"`)
  await pool.query(`CREATE TABLE "${schema}".items (id uuid PRIMARY KEY, payload text NOT NULL)`)
  const one = `INSERT INTO "${schema}".items VALUES ($1, $2)`
  const many = `INSERT INTO "${schema}".items SELECT * FROM unnest($1::uuid[], $2::text[])`
  return {
    insert: async (payload) =>
      void (await pool.query({ name: 'one', text: one, values: [systemClock.id(), payload] })),
    insertAll: async (payloads) => {
      const ids = payloads.map(() => systemClock.id())
      await pool.query({ name: 'many', text: many, values: [ids, payloads] })
    },
  }
}

function createApp(rows: Rows): FastifyInstance {
  const app = Fastify({ bodyLimit: 2 ** 30 })
  app.addContentTypeParser('application/x-ndjson', { parseAs: 'string' }, (_, body, done) =>
    done(null, body),
  )
  app.post('/one', async (request, reply) => {
    const { queue } = request.body as { queue?: unknown }
    if (typeof queue !== 'string') return reply.code(400).send({ error: 'no queue' })
    await rows.insert(JSON.stringify(request.body))
    return reply.code(201).send({ ok: true })
  })
  app.post('/lines', async (request) => {
    const lines = (request.body as string).split('\n').filter((line) => line !== '')
    for (const line of lines) JSON.parse(line)
    await rows.insertAll(lines)
    return lines.map((_, line) => ({ line }))
  })
  return app
}

const store = process.argv[2]!
const rows = store.startsWith('sqlite:')
  ? sqliteRows(store.slice('sqlite:'.length))
  : await postgresRows(store)
const url = await createApp(rows).listen({ host: '127.0.0.1', port: 0 })
process.stdout.write(`${JSON.stringify({ url })}\n`)

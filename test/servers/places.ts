// A place is the part of a shared server that one test uses, with its cleanup.
import { Client } from 'pg'
import { createClient, createCluster } from 'redis'
import { freshName } from './servers.ts'

/** Only a name: the test creates the content. `clear` removes everything in the place. */
export interface Place {
  readonly name: string
  readonly clear: () => Promise<void>
}

/** A schema. */
export function postgresPlace(url: string): Place {
  const name = freshName()
  const clear = async (): Promise<void> => {
    const client = new Client({ connectionString: url })
    await client.connect()
    try {
      await client.query(`drop schema if exists "${name}" cascade`)
    } finally {
      await client.end()
    }
  }
  return { name, clear }
}

/** A prefix of keys, also inside braces (hash tags). */
export function redisPlace(url: string): Place {
  const name = freshName()
  const clear = async (): Promise<void> => {
    const client = createClient({ url })
    client.on('error', () => {})
    await client.connect()
    try {
      for await (const keys of client.scanIterator({ MATCH: `*${name}*`, COUNT: 1000 }))
        if (keys.length > 0) await client.unlink(keys)
    } finally {
      client.destroy()
    }
  }
  return { name, clear }
}

/** A prefix of keys on all masters of a cluster. */
export function redisClusterPlace(url: string): Place {
  const name = freshName()
  const clear = async (): Promise<void> => {
    const cluster = createCluster({ rootNodes: [{ url }] })
    cluster.on('error', () => {})
    await cluster.connect()
    try {
      for (const master of cluster.masters) {
        const client = await cluster.nodeClient(master)
        for await (const keys of client.scanIterator({ MATCH: `*${name}*`, COUNT: 1000 }))
          await Promise.all(keys.map((key) => client.unlink(key)))
      }
    } finally {
      cluster.destroy()
    }
  }
  return { name, clear }
}

/** A prefix of indices, and of the templates for them. */
export function opensearchPlace(url: string): Place {
  const name = freshName()
  const clear = async (): Promise<void> => {
    for (const path of [`${name}*?expand_wildcards=all`, `_index_template/${name}*`]) {
      const answer = await fetch(new URL(path, url), { method: 'DELETE' })
      if (!answer.ok && answer.status !== 404)
        throw new Error(`DELETE ${path} answered ${answer.status}: ${await answer.text()}`)
    }
  }
  return { name, clear }
}

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { pipelineCapture } from '../../src/pipeline/dead/capture.ts'
import { systemClock } from '../../src/clock/clock.ts'
import { deadStreamOf } from '../../src/pipeline/dead/stream.ts'
import type { DocumentStore } from '../../src/pipeline/documents/documents.ts'
import {
  erase,
  type EraseOptions,
  type ErasureKey,
  type ErasureReport,
} from '../../src/pipeline/erase.ts'
import { replayNode } from '../../src/pipeline/replay/replay.ts'
import { aStream, writeStream } from '../../src/pipeline/stream.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { aCapturer } from '../capture/a-capturer.ts'
import { aFolder } from '../folders.ts'
import { backend, freshName } from '../servers/servers.ts'
import { deadBench, putOf, type Dead, type DeadBench } from './dead-records.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing).each(['memory', 'sqlite'])(
  'erase, with letters in %s',
  { timeout: 60_000 },
  (kind) => {
    let bench: DeadBench
    const letters = aFolder('erase')
    let folder: string
    let store: Store

    beforeEach(async () => {
      bench = await deadBench(url)
      folder = join(letters, freshName())
      mkdirSync(folder)
      const path = join(folder, 'letters.db')
      store = kind === 'memory' ? memoryStore({ clock: systemClock }) : sqliteStore({ path })
      await store.open()
    })

    afterEach(async () => {
      await store.close()
      await bench.close()
    })

    const of = (account: string, offset: number, location?: string): Dead => {
      const id = `${account}-${offset}`
      const ref = { case: 'documentRef', value: { location: location ?? '' } } as const
      const metadata = { accountId: account }
      const content = location === undefined ? {} : { content: ref }
      const value = writeStream(aStream({ streamId: id, metadata, ...content }))
      return { id, key: `key-${account}`, offset, value }
    }

    /** Letters of all dead records. */
    const capture = async (): Promise<void> => {
      const capturer = aCapturer(store, systemClock)
      const { dlq } = bench.settings
      for (const topic of [dlq.topic, dlq.quarantineTopic])
        for (const record of await bench.read(topic)) {
          const found = { cluster: bench.name, node: 'node-1', isQuarantine: false }
          await capturer.capture(pipelineCapture(deadStreamOf(record, found)))
        }
    }

    const erased = (
      more: Pick<EraseOptions, 'key'> & Partial<EraseOptions>,
    ): Promise<ErasureReport> =>
      erase({
        cluster: bench.cluster,
        nodes: [bench.settings],
        store,
        by: 'ann',
        reason: 'request 7',
        ...more,
      })

    it('erases dead records, letters with their edits and documents, without a trace of the name', async () => {
      await bench.dies([of('ada', 1), of('bob', 2), of('ada', 3, 'place/1')])
      await bench.put(bench.settings.dlq.quarantineTopic, [putOf(of('ada', 4), bench.settings, 0)])
      await capture()
      const queue = await DeadLetterQueue.open(store, { clock: systemClock })
      const [edited] = (await store.find({})).items.filter(
        ({ source }) => source.kind === 'pipeline' && source.streamId === 'ada-1',
      )
      await queue.edit(edited!.id, { payload: 'not ada any more', by: 'bob', reason: 'mended' })
      const removed: string[] = []
      const documents = {
        remove: async ({ location }) => removed.push(location) > 0,
      } as Partial<DocumentStore> as DocumentStore
      const report = await erased({ key: { accountId: 'ada' }, documents })
      expect(report).toMatchObject({ records: 3, letters: 3, leased: 0, documents: 1, keyless: 0 })
      expect(removed).toEqual(['place/1'])
      const left = (await store.find({})).items
      expect(left.map(({ source }) => source)).toMatchObject([{ streamId: 'bob-2' }])
      expect(await store.records.list('edit')).toEqual([])
      const record = await store.records.get('erasure', report.id)
      expect(record?.value).toMatchObject({ by: 'ann', reason: 'request 7', kind: 'accountId' })
      expect(JSON.stringify(record)).not.toContain('ada')
      const { cluster, settings } = bench
      expect(await replayNode({ cluster, settings })).toMatchObject({ sent: 1 })
      expect(await erased({ key: { accountId: 'ada' } })).toMatchObject({ records: 0, letters: 0 })
    })

    it('erases nothing by an empty key', async () => {
      const { dlq } = bench.settings
      for (const dead of [of('ada', 1), of('bob', 2)])
        await bench.put(dlq.topic, [{ ...putOf(dead, bench.settings, 0), key: '' }])
      const report = await erased({ key: { accountId: 'ada' } })
      expect(report).toMatchObject({ records: 0, keyless: 1 })
      expect(await bench.read(dlq.topic)).toHaveLength(2)
    })

    it('erases all copies of a record, even in partitions of its key before the topic got more partitions', async () => {
      const [once, both] = [of('ada', 1), of('ada', 2)]
      await bench.dies([once, both])
      await bench.dies([both], 1)
      expect(await erased({ key: { accountId: 'ada' } })).toMatchObject({ records: 3 })
      const gone = (await bench.read(bench.settings.dlq.topic)).filter(({ isNull }) => isNull)
      expect(gone.map(({ partition }) => partition)).toEqual([0, 0, 1])
    })

    it('finds records by stream and by key', async () => {
      await bench.dies([of('ada', 1), of('ada', 2), of('bob', 3)])
      await capture()
      const one = await erased({ key: { streamId: 'ada-2' } })
      expect(one).toMatchObject({ records: 1, letters: 1 })
      const rest = await erased({ key: { recordKey: 'key-ada' } })
      expect(rest).toMatchObject({ records: 1, letters: 1 })
    })

    it('erases letters whose records the topic no longer has', async () => {
      await bench.dies([of('ada', 1)])
      await capture()
      const partitions = [{ partition: 0, offset: 1n }]
      await bench.admin.deleteRecords({ topics: [{ name: bench.settings.dlq.topic, partitions }] })
      const report = await erased({ key: { recordKey: 'key-ada' } })
      expect(report).toMatchObject({ records: 0, letters: 1 })
    })

    it.each([{ recordKey: undefined }, { accountId: undefined }])(
      'ignores undefined fields of a key: %o',
      async (undefinedFields) => {
        await bench.dies([{ id: 'ada', offset: 1 }, { id: 'bob', offset: 2 }, of('cid', 3)])
        await capture()
        const key = { streamId: 'ada', ...undefinedFields } as ErasureKey
        expect(await erased({ key })).toMatchObject({ records: 1, letters: 1 })
      },
    )

    it('rejects an erasure without a data subject', async () => {
      const wrong = [
        {},
        { streamId: '' },
        { streamId: undefined },
        { tenant: 'ada' },
        { streamId: 7 },
        { streamId: 'ada-1', accountId: 'ada' },
      ] as unknown as ErasureKey[]
      for (const key of wrong)
        await expect(erased({ key }), JSON.stringify(key)).rejects.toMatchObject({
          code: 'INVALID_INPUT',
        })
    })
  },
)

import { describe, expect, it } from 'vitest'
import { readTrace } from './strace.ts'
import { findUnsynced } from './find-unsynced.ts'

const actions = {
  count: 1,
  log: /\.wal$/,
  marker: () => 'marker-0.',
  acknowledged: () => 'acknowledged-0.',
  viaSocket: false,
}
const write = '7 pwrite64(27</d/a.wal>, "\\0\\5marker-0.", 10, 0) = 10'
const end = '7 pwrite64(27</d/a.wal>, "end", 3, 10) = 3'
const sync = '7 fdatasync(27</d/a.wal>) = 0'
const acknowledged = '5 write(1<pipe:[1]>, "acknowledged-0.", 7) = 7'
const problems = (lines: string[], viaSocket = false): string[] =>
  findUnsynced(readTrace(lines.join('\n')), { ...actions, viaSocket })

describe('findUnsynced', () => {
  it('accepts a write, its sync and the acknowledgement, in this order', () => {
    expect(problems([write, end, sync, acknowledged])).toEqual([])
  })

  it.each<[what: string, lines: string[], problem: RegExp]>([
    ['no sync', [write, end, acknowledged], /synced/],
    ['a sync after the acknowledgement', [write, acknowledged, sync], /synced/],
    ['a sync before the end was written', [write, sync, end, acknowledged], /synced/],
    ['the sync of another file', [write, sync.replace('a.wal', 'b.wal'), acknowledged], /synced/],
    [
      'a sync that failed',
      [write, sync.replace('0', '-1 EIO (Input/output error)'), acknowledged],
      /synced/,
    ],
    ['a write to another file', [write.replace('a.wal', 'a.tmp'), sync, acknowledged], /written/],
    ['a write after the acknowledgement', [acknowledged, write, sync], /written/],
    ['no acknowledgement', [write, sync], /never/],
    [
      'a sync that has not returned',
      [
        write,
        '7 fdatasync(27</d/a.wal> <unfinished ...>',
        acknowledged,
        '7 <... fdatasync resumed>) = 0',
      ],
      /synced/,
    ],
    [
      'a sync that started before the write returned',
      [
        '7 pwrite64(27</d/a.wal>, "marker-0." <unfinished ...>',
        '8 fdatasync(27</d/a.wal> <unfinished ...>',
        '7 <... pwrite64 resumed>, 7, 0) = 7',
        '8 <... fdatasync resumed>) = 0',
        acknowledged,
      ],
      /synced/,
    ],
  ])('finds %s', (_, lines, problem) => {
    expect(problems(lines)).toEqual([expect.stringMatching(problem)])
  })

  const request = '7 recvfrom(9<TCP:[1:1->1:2]>, "marker-0.", 99, 0, NULL, NULL) = 7'
  const reply = '7 sendto(9<TCP:[1:1->1:2]>, "done", 4, 0, NULL, 0) = 4'
  const received = '8 recvfrom(9<TCP:[1:1->1:3]>, "acknowledged-0.", 99, 0, NULL, NULL) = 7'

  it('treats the last reply to the requesting client as the acknowledgement', () => {
    expect(problems([request, reply, write, end, sync, reply, received], true)).toEqual([])
    expect(problems([request, write, end, reply, sync, received], true)).toHaveLength(1)
    expect(problems([request, write, end, sync, received], true)).toHaveLength(1)
  })

  it('recognises a reply that is received before its call has returned', () => {
    const replying = [
      '7 sendto(9<TCP:[1:1->1:2]>, "done", 4, 0, NULL, 0 <unfinished ...>',
      received,
      '7 <... sendto resumed>) = 4',
    ]
    expect(problems([request, write, end, sync, ...replying], true)).toEqual([])
    expect(problems([request, write, end, ...replying, sync], true)).toHaveLength(1)
  })
})

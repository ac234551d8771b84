import { describe, expect, it } from 'vitest'
import { readTrace } from './strace.ts'
import { unsynced } from './synced.ts'

const acts = {
  count: 1,
  log: /\.wal$/,
  mark: () => 'mark-0.',
  told: () => 'told-0.',
  served: false,
}
const write = '7 pwrite64(27</d/a.wal>, "\\0\\5mark-0.", 10, 0) = 10'
const end = '7 pwrite64(27</d/a.wal>, "end", 3, 10) = 3'
const sync = '7 fdatasync(27</d/a.wal>) = 0'
const told = '5 write(1<pipe:[1]>, "told-0.", 7) = 7'
const problems = (lines: string[], served = false): string[] =>
  unsynced(readTrace(lines.join('\n')), { ...acts, served })

describe('unsynced', () => {
  it('is content with a write, its sync and the acknowledgement, in this order', () => {
    expect(problems([write, end, sync, told])).toEqual([])
  })

  it.each<[what: string, lines: string[], problem: RegExp]>([
    ['no sync', [write, end, told], /synced/],
    ['a sync after the acknowledgement', [write, told, sync], /synced/],
    ['a sync before the end was written', [write, sync, end, told], /synced/],
    ['the sync of another file', [write, sync.replace('a.wal', 'b.wal'), told], /synced/],
    [
      'a sync that failed',
      [write, sync.replace('0', '-1 EIO (Input/output error)'), told],
      /synced/,
    ],
    ['a write to another file', [write.replace('a.wal', 'a.tmp'), sync, told], /written/],
    ['a write after the acknowledgement', [told, write, sync], /written/],
    ['no acknowledgement', [write, sync], /never/],
    [
      'a sync that has not come back',
      [write, '7 fdatasync(27</d/a.wal> <unfinished ...>', told, '7 <... fdatasync resumed>) = 0'],
      /synced/,
    ],
    [
      'a sync that began before the write had come back',
      [
        '7 pwrite64(27</d/a.wal>, "mark-0." <unfinished ...>',
        '8 fdatasync(27</d/a.wal> <unfinished ...>',
        '7 <... pwrite64 resumed>, 7, 0) = 7',
        '8 <... fdatasync resumed>) = 0',
        told,
      ],
      /synced/,
    ],
  ])('finds %s', (_, lines, problem) => {
    expect(problems(lines)).toEqual([expect.stringMatching(problem)])
  })

  const asked = '7 recvfrom(9<TCP:[1:1->1:2]>, "mark-0.", 99, 0, NULL, NULL) = 7'
  const reply = '7 sendto(9<TCP:[1:1->1:2]>, "done", 4, 0, NULL, 0) = 4'
  const heard = '8 recvfrom(9<TCP:[1:1->1:3]>, "told-0.", 99, 0, NULL, NULL) = 7'

  it('takes the last reply to whoever asked for the acknowledgement', () => {
    expect(problems([asked, reply, write, end, sync, reply, heard], true)).toEqual([])
    expect(problems([asked, write, end, reply, sync, heard], true)).toHaveLength(1)
    expect(problems([asked, write, end, sync, heard], true)).toHaveLength(1)
  })

  it('knows a reply that is heard before its call has come back', () => {
    const replying = [
      '7 sendto(9<TCP:[1:1->1:2]>, "done", 4, 0, NULL, 0 <unfinished ...>',
      heard,
      '7 <... sendto resumed>) = 4',
    ]
    expect(problems([asked, write, end, sync, ...replying], true)).toEqual([])
    expect(problems([asked, write, end, ...replying, sync], true)).toHaveLength(1)
  })
})

import type { AuditEntry, AuditPosition, AuditReport } from '../../letter/audit.ts'
import { genesis, whyBroken } from './chain.ts'
import { idOf, type AuditBatch, type AuditRecords } from './records.ts'

const maxUnfinished = 100

/**
 * Reads the whole log and checks that no entry was changed, removed, inserted or moved. `expected`
 * is a position that was kept elsewhere: without it, nobody can tell a log that was rewritten from
 * its first entry to its head.
 */
export async function verifyChain(
  records: AuditRecords,
  expected?: AuditPosition,
): Promise<AuditReport> {
  for (;;) {
    const pruned = await records.pruned()
    const check = new Check(pruned && { seq: pruned.seq, hash: pruned.hash }, expected)
    const head = await records.head()
    if (head) check.expect(head)
    await check.readAll(records)
    check.end(head)
    const report = check.report()
    // A prune during the check removes entries that it wanted to read.
    if (report.ok || (await records.pruned())?.seq === pruned?.seq) return report
  }
}

class Check {
  readonly #pruned: AuditPosition | undefined
  /** Positions that the log must have, by their numbers. */
  readonly #expected = new Map<number, string>()
  readonly #unfinished = new Set<number>()
  #last: AuditPosition
  #entries = 0
  #hasPruneEntry = false
  #bad: { firstBad: number; why: string } | undefined

  constructor(pruned: AuditPosition | undefined, expected: AuditPosition | undefined) {
    this.#pruned = pruned
    this.#last = pruned ?? genesis
    if (expected) this.expect(expected)
  }

  expect({ seq, hash }: AuditPosition): void {
    const known = this.#expected.get(seq) ?? (seq === this.#last.seq ? this.#last.hash : hash)
    if (known !== hash) this.#fail(seq, `entry ${seq} has another hash than expected`)
    else if (seq !== this.#last.seq) this.#expected.set(seq, hash)
  }

  async readAll(records: AuditRecords): Promise<void> {
    for await (const page of records.pages(this.#last.seq))
      for (const batch of page) {
        if (this.#bad) return
        this.#readBatch(batch)
      }
  }

  #readBatch({ id, entries }: AuditBatch): void {
    const next = this.#last.seq + 1
    if (id > idOf(next)) this.#fail(next, `entry ${next} is missing: the next record is ${id}`)
    else if (id !== idOf(next))
      this.#fail(next, `record ${id} was inserted before entry ${next}, or forks the log there`)
    else if (entries.length === 0) this.#fail(next, `record ${id} is damaged: it has no entries`)
    for (const entry of entries) {
      if (this.#bad) return
      this.#readEntry(entry)
    }
  }

  #readEntry(entry: AuditEntry): void {
    const { seq, hash, action, outcome, startSeq } = entry
    const why = whyBroken(this.#last, entry)
    if (why !== undefined) return this.#fail(this.#last.seq + 1, why)
    if ((this.#expected.get(seq) ?? hash) !== hash)
      return this.#fail(seq, `entry ${seq} has another hash than expected: the log was rewritten`)
    this.#expected.delete(seq)
    this.#last = { seq, hash }
    this.#entries += 1
    if (outcome === 'started') this.#unfinished.add(seq)
    else if (startSeq !== undefined) this.#unfinished.delete(startSeq)
    if (action === 'audit-prune') this.#hasPruneEntry = true
  }

  /** What only the end shows. */
  end(head: AuditPosition | undefined): void {
    if (this.#bad) return
    const [missing] = [...this.#expected.keys()].toSorted((a, b) => b - a)
    const next = this.#last.seq + 1
    if (missing !== undefined && missing < next)
      this.#fail(
        missing,
        `entry ${missing} was pruned: it cannot be compared with what is expected`,
      )
    else if (missing !== undefined)
      this.#fail(next, `entries ${next} to ${missing} are missing at the end of the log`)
    else if (!head && this.#last.seq > 0) this.#fail(next, 'the record of the head is missing')
    else if (this.#pruned && !this.#hasPruneEntry)
      this.#fail(1, `entries up to ${this.#pruned.seq} were removed, but not by a prune`)
  }

  report(): AuditReport {
    return {
      ok: this.#bad === undefined,
      entries: this.#entries,
      head: this.#last,
      ...(this.#pruned ? { pruned: this.#pruned } : {}),
      unfinished: [...this.#unfinished].slice(0, maxUnfinished),
      ...this.#bad,
    }
  }

  #fail(firstBad: number, why: string): void {
    this.#bad ??= { firstBad, why }
  }
}

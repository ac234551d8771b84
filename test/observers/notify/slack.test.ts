import { afterEach, describe, expect, it } from 'vitest'
import { slack } from '../../../src/observers/notify/slack.ts'
import { alert, cleared, digest, hostile, raised, test } from './a-notification.ts'
import { aServer, closeServers } from './a-server.ts'

afterEach(closeServers)

describe('slack', () => {
  const blocksOf = (body: Record<string, unknown>): string[] =>
    (body['blocks'] as { text: { type: string; text: string } }[]).map(({ text }) => {
      expect(text.type).toBe('plain_text')
      return text.text
    })

  it('says what happened, since when, what to do and where', async () => {
    const { url, requests } = await aServer()
    const target = slack({ url, private: true })
    for (const one of [raised, cleared, digest, test]) await target.send(one)
    expect(requests.map(({ body }) => blocksOf(body))).toEqual([
      [
        'WARNING: many-exhausted',
        `${alert.summary}\nSince ${alert.raisedAt}\nLook at the groups.`,
        'https://redrive.example.com',
      ],
      [
        'Cleared: many-exhausted',
        `${alert.summary}\nFrom ${alert.raisedAt} to 2026-01-01T01:00:00.000Z`,
        'https://redrive.example.com',
      ],
      [
        'Redrive: 1 raised, 1 cleared, 1 still raised',
        `WARNING: many-exhausted\n${alert.summary}\nSince ${alert.raisedAt}\nLook at the groups.`,
        `Cleared: backlog\n${alert.summary}\nSince ${alert.raisedAt}`,
        `Still raised: nearly-full\nSince ${alert.raisedAt}`,
        'https://redrive.example.com',
      ],
      ['Redrive test', 'This is a test. No alert is raised.', 'https://redrive.example.com'],
    ])
    expect(requests[0]!.body['text']).toBe(`WARNING: many-exhausted – ${alert.summary}`)
  })

  it('escapes formatting, links, mentions and hidden characters', async () => {
    const { url, requests } = await aServer()
    const long = hostile + '&'.repeat(9000)
    const changes = [{ state: 'raised' as const, alert: { ...alert, name: long, summary: long } }]
    await slack({ url, private: true }).send({ ...raised, changes })
    const [{ text, body }] = requests as [(typeof requests)[number]]
    expect(text).not.toMatch(/[<>\u202e]/)
    expect(text).toContain('&lt;!channel&gt; *b* &lt;https://evil.example|ok&gt; &amp; ')
    for (const block of blocksOf(body)) {
      expect(block).not.toMatch(/[^\P{Cc}\n]/u)
      expect(block.length).toBeLessThanOrEqual(3000)
    }
  })

  it('describes a bounded number of alerts, and counts the others', async () => {
    const { url, requests } = await aServer()
    const stillRaised = Array.from({ length: 200 }, (_, n) => ({ ...alert, name: `a${n}` }))
    await slack({ url, private: true }).send({ ...digest, stillRaised })
    const blocks = blocksOf(requests[0]!.body)
    expect(blocks.length).toBeLessThanOrEqual(50)
    expect(blocks).toContain('and 162 more')
  })
})

it('rejects an unknown option', () => {
  expect(() => slack({ url: 'https://a.example/', timeout: 5 } as never)).toThrow(
    'slack options: did you mean "timeoutMs"?',
  )
})

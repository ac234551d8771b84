import { expect, it } from 'vitest'
import { toRedriveError } from '../../../src/backends/sqs/errors.ts'

it('explains how to set a region if none is known', () => {
  const trouble = toRedriveError(new Error('Region is missing'), 'orders')
  expect(trouble.code).toBe('INVALID_CONFIG')
  expect(trouble.message).toMatch(/orders: .*\?region=.*AWS_REGION/)
})

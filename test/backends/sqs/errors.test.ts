import { expect, it } from 'vitest'
import { toRedriveError } from '../../../src/backends/sqs/errors.ts'

it('explains how to set a region if none is known', () => {
  const error = toRedriveError(new Error('Region is missing'), 'orders')
  expect(error.code).toBe('INVALID_CONFIG')
  expect(error.message).toMatch(/orders: .*\?region=.*AWS_REGION/)
})

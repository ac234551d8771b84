import { describe, expect, it } from 'vitest'
import { checkAddress } from '../../../src/backends/http/address.ts'

const never = [
  '0.0.0.0',
  '0.1.2.3',
  '169.254.169.254',
  '169.254.0.1',
  '100.100.100.200',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  'fe80::1',
  'fe80::1%eth0',
  'febf::1',
  'ff02::1',
  'fd00:ec2::254',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '::169.254.169.254',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::1',
  '2002:a9fe:a9fe::1',
  '2001:0:1::1',
  'not an address',
  '',
]

const inside = [
  '127.0.0.1',
  '127.255.255.254',
  '10.1.2.3',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  '198.18.0.1',
  '::1',
  'fc00::1',
  'fd12:3456::1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::127.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b::10.0.0.1',
]

const outside = [
  '1.1.1.1',
  '172.32.0.1',
  '172.15.255.255',
  '169.253.0.1',
  '2606:4700::1111',
  '::ffff:1.1.1.1',
  '64:ff9b::101:101',
]

describe('checkAddress', () => {
  it.each(never)('rejects %j in any case', (address) => {
    expect(checkAddress(address, false)).toBeDefined()
    expect(checkAddress(address, true)).toBeDefined()
  })

  it.each(inside)('rejects %s unless private addresses are allowed', (address) => {
    expect(checkAddress(address, false)).toContain('private: true')
    expect(checkAddress(address, true)).toBeUndefined()
  })

  it.each(outside)('allows %s', (address) => {
    expect(checkAddress(address, false)).toBeUndefined()
  })
})

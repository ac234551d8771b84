import { BlockList, isIP } from 'node:net'

type Range = readonly [network: string, prefix: number]

function listOf(ipv4: readonly Range[], ipv6: readonly Range[]): BlockList {
  const list = new BlockList()
  for (const [network, prefix] of ipv4) list.addSubnet(network, prefix, 'ipv4')
  for (const [network, prefix] of ipv6) list.addSubnet(network, prefix, 'ipv6')
  return list
}

/**
 * Never allowed, whatever the configuration: the unspecified address, link-local ones, where clouds
 * serve the credentials of a machine, multicast and reserved ones, and tunnels that hide the real
 * address.
 */
const forbidden = listOf(
  [
    ['0.0.0.0', 8],
    ['169.254.0.0', 16],
    ['100.100.100.200', 32],
    ['192.0.0.192', 32],
    ['224.0.0.0', 4],
    ['240.0.0.0', 4],
  ],
  [
    ['::', 128],
    ['fe80::', 10],
    ['fec0::', 10],
    ['ff00::', 8],
    ['fd00:ec2::254', 128],
    ['fd20:ce::254', 128],
    ['2001::', 32],
    ['2002::', 16],
    ['64:ff9b:1::', 48],
  ],
)

/** Addresses of this machine and of its networks: allowed only by configuration. */
const inside = listOf(
  [
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
  ],
  [
    ['::1', 128],
    ['fc00::', 7],
  ],
)

/** IPv4 inside IPv6: mapped, formerly compatible, and translated by a network. */
const carriers = listOf(
  [],
  [
    ['::', 96],
    ['::ffff:0:0', 96],
    ['64:ff9b::', 96],
  ],
)

/**
 * Why an address is not allowed, or undefined if it is. An invalid address is not allowed either.
 */
export function checkAddress(address: string, mayBePrivate: boolean): string | undefined {
  const plain = address.split('%', 1)[0]!
  const version = isIP(plain)
  if (version === 0) return 'is not an address'
  const family = version === 4 ? 'ipv4' : 'ipv6'
  if (forbidden.check(plain, family)) return 'is never allowed'
  if (!mayBePrivate && inside.check(plain, family))
    return 'is private: it is allowed only with private: true'
  if (family === 'ipv4' || plain === '::1' || !carriers.check(plain, family)) return undefined
  return checkAddress(carriedBy(plain), mayBePrivate)
}

/** The last 32 bits of an IPv6 address as an IPv4 address. A URL normalises the spelling. */
function carriedBy(address: string): string {
  const groups = new URL(`http://[${address}]/`).hostname.slice(1, -1).split(':')
  const [high = 0, low = 0] = groups.slice(-2).map((group) => Number.parseInt(group || '0', 16))
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

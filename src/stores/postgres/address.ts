import {
  addressOf,
  invalid,
  takeSetting,
  type Address,
  type AddressOptions,
} from '../../backends/postgres/address.ts'

/** Where the letters are, and how to connect. */
export interface StoreAddress extends Address {
  /** How the schema must be partitioned; undefined accepts the existing schema. */
  partitions: 'month' | undefined
}

export interface StoreAddressOptions extends AddressOptions {
  partitions?: 'month' | undefined
}

const defaults = {
  schema: 'redrive',
  poolSize: 10,
  leastPoolSize: 2,
  alsoKnown: ['partitions'],
}

/** Reads the options, which override the settings in the URL. */
export function storeAddressOf(options: StoreAddressOptions): StoreAddress {
  const address = addressOf(options, defaults)
  const { server } = address
  if ('pool' in server) return { ...address, partitions: options.partitions }
  const url = new URL(server.url)
  const partitions = takeSetting(url, 'partitions')
  if (partitions !== undefined && partitions !== 'month') throw invalid('partitions must be month')
  return { ...address, server: { url: url.href }, partitions: options.partitions ?? partitions }
}

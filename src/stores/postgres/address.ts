import {
  addressOf,
  invalid,
  taken,
  type Address,
  type AddressOptions,
} from '../../backends/postgres/address.ts'

/** Where the letters are, and under which conditions. */
export interface StoreAddress extends Address {
  /** What the schema must be made by, undefined where it goes with what is there. */
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

/** Options go before what the URL says. */
export function storeAddressOf(options: StoreAddressOptions): StoreAddress {
  const address = addressOf(options, defaults)
  const url = new URL(address.url)
  const partitions = taken(url, 'partitions')
  if (partitions !== undefined && partitions !== 'month') throw invalid('partitions must be month')
  return { ...address, url: url.href, partitions: options.partitions ?? partitions }
}

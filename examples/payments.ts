export interface Order {
  id: number
}

let calls = 0

/** A stand-in for a payment service that refuses the first call. */
export const payments = {
  async charge(order: Order): Promise<void> {
    calls++
    if (calls === 1)
      throw Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:443'), { code: 'ECONNREFUSED' })
    console.log(`order ${order.id} charged at call ${calls}`)
  },
}

export function report(error: unknown): void {
  console.log(`failed: ${String(error)}`)
}

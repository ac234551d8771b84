/*
 * Prepared statements are planned once, often while the tables are small. Their plans must stay
 * good when the tables grow, so every letter is looked up by an index.
 */

export const plannerSettings: readonly string[] = [
  'seqscan',
  'bitmapscan',
  'hashjoin',
  'mergejoin',
].map((feature) => `enable_${feature} = off`)

/**
 * SQL that is true, and that the planner takes for rare. It then starts with the ids, however few
 * letters there are, and looks up each letter.
 */
export const seemsRare = (id: string): string => `${id} = coalesce(${id}, ${id})`

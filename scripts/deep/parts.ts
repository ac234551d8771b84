// The parts of `npm run deep`: what takes too long for `npm test`. Add a part as a row.
export interface Part {
  readonly name: string
  /** What it shows, for docs/quality.md. */
  readonly shows: string
  /** The commands, run one after the other. `files` are test folders, run in full. */
  readonly run:
    | { readonly files: readonly string[] }
    | { readonly commands: readonly (readonly string[])[] }
  /** The paths whose changes make a result old. */
  readonly protects: readonly string[]
}

const crash = (...args: string[]): readonly string[] => ['node', 'test/crash/run.ts', ...args]

export const parts: readonly Part[] = [
  {
    name: 'stores',
    shows: 'the whole store contract on every variant of every store, more random operations',
    run: { files: ['test/stores/', 'test/transfer/'] },
    protects: ['src/stores', 'src/backends', 'src/transfer', 'src/store.ts', 'test/contract'],
  },
  {
    name: 'mailboxes',
    shows: 'the whole mailbox contract on every broker, more random operations, pipelines and taps',
    run: {
      files: ['test/mailboxes/', 'test/taps/', 'test/backends/', 'test/pipeline/', 'test/loops/'],
    },
    protects: ['src/mailboxes', 'src/backends', 'src/taps', 'src/pipeline', 'src/loops'],
  },
  {
    name: 'faults',
    shows: 'every network and disk fault on every server',
    run: { files: ['test/faults/', 'test/servers/'] },
    protects: ['src/stores', 'src/mailboxes', 'src/backends', 'src/taps'],
  },
  {
    name: 'browsers',
    shows: 'every page and action of the dashboard on SQLite and Postgres, in both themes',
    run: { files: ['test/web/'] },
    protects: ['web/src', 'src/api', 'src/server'],
  },
  {
    name: 'commands',
    shows: 'commands as processes of their own, and every block of the documentation',
    run: {
      files: ['test/cli/', 'test/docs/', 'test/examples/', 'test/exit/', 'test/bad-input/'],
    },
    protects: ['src/cli', 'docs', 'examples', 'README.md'],
  },
  {
    name: 'server',
    shows: 'attacks on every endpoint, and more random inputs for letters, policies and actions',
    run: {
      files: [
        'test/server/',
        'test/observers/',
        'test/bulk/',
        'test/groups/',
        'test/redelivery/',
        'test/capture/',
        'test/letter/',
        'test/policy/',
        'test/admin/',
        'test/check/',
        'test/crash/',
        'test/simulation/',
        'test/load/',
      ],
    },
    protects: [
      'src/server',
      'src/bulk',
      'src/groups',
      'src/redelivery',
      'src/letter',
      'src/policy',
    ],
  },
  {
    name: 'crash-stores',
    shows: 'processes killed, paused and cut off on each store, each planted bug, bulk actions',
    run: {
      commands: [
        crash('--seconds', '30'),
        crash('--seconds', '30', '--store', 'postgres'),
        crash('--seconds', '30', '--store', 'redis'),
        crash('--bugs', '--seconds', '6'),
        crash('--bulk', '--letters', '20000', '--kills', '8'),
      ],
    },
    protects: ['src/stores', 'src/redelivery', 'src/backends', 'src/capture', 'src/bulk'],
  },
  {
    name: 'crash-mailboxes',
    shows: 'loops killed at every step on each broker, and each planted bug',
    run: {
      commands: [
        ...['sqlite', 'postgres', 'redis', 'rabbitmq'].map((mailbox) =>
          crash('--mailbox', mailbox, '--seconds', '20'),
        ),
        crash('--mailbox', 'sqlite', '--bugs', '--seconds', '6'),
      ],
    },
    protects: ['src/mailboxes', 'src/loops', 'src/backends'],
  },
  {
    name: 'crash-pipeline',
    shows: 'nodes of a pipeline killed, frozen, added and removed on a broker of their own',
    run: {
      commands: [
        crash('--pipeline', '--records', '4000', '--restarts', '1'),
        crash('--pipeline', '--records', '4000', '--restarts', '1', '--transactional'),
      ],
    },
    protects: ['src/pipeline', 'src/mailboxes/kafka', 'src/backends/kafka'],
  },
  {
    name: 'crash-server',
    shows: 'the server killed under load: each acknowledged capture is stored once',
    run: {
      commands: [
        crash('--server', '--seconds', '20'),
        crash('--server', '--seconds', '20', '--store', 'postgres'),
      ],
    },
    protects: ['src/server', 'src/stores', 'src/capture'],
  },
  {
    name: 'load',
    shows: 'hundreds of clients: no error, bounded memory, every capture stored once',
    run: {
      commands: [
        ['node', 'test/load/run.ts', '--seconds', '30'],
        ['node', 'test/load/run.ts', '--seconds', '30', '--store', 'postgres'],
        ['node', 'test/load/run.ts', '--lines', '50000'],
      ],
    },
    protects: ['src/server', 'src/stores', 'src/capture'],
  },
  {
    name: 'simulation',
    shows: '2,000 seeds of whole workers in virtual time',
    run: { commands: [['node', 'test/simulation/run.ts', '--seeds', '2000']] },
    protects: ['src/redelivery', 'src/letter', 'src/policy', 'src/capture', 'src/queue'],
  },
  {
    name: 'foreign',
    shows: 'the Java clients of Kafka, Spring, Kafka Connect, RabbitMQ and NATS',
    run: { commands: [['node', 'test/foreign/run.ts']] },
    protects: ['src/taps', 'src/mailboxes', 'test/foreign'],
  },
  {
    name: 'newcomer',
    shows: 'a clean clone, `npm start`, the packed package, README and Getting started',
    run: { commands: [['node', 'test/package/run.ts']] },
    protects: ['package.json', 'src/cli', 'README.md', 'docs/getting-started.md'],
  },
  {
    name: 'seeds',
    shows: 'the requirements of the four founding designs, clause by clause',
    run: { commands: [['node', 'test/seeds/run.ts']] },
    protects: ['src', 'test/seeds'],
  },
]

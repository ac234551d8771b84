import { typescriptPages } from '../../.vitepress/typescript.ts'

export default { paths: typescriptPages }

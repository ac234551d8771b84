import { serve } from '../../backends/sqlite/serve.ts'
import { FolderKeeper } from './folder-keeper.ts'

serve((folder, report) => new FolderKeeper(folder as string, report))

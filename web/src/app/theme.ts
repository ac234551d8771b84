import {
  Badge,
  Button,
  createTheme,
  Drawer,
  Modal,
  Table,
  Tooltip,
  type MantineColorsTuple,
} from '@mantine/core'

/** The one accent. Colours of states are in tokens.css. */
const accent: MantineColorsTuple = [
  '#eef3fd',
  '#dbe5f8',
  '#b4c9f1',
  '#8aabea',
  '#6691e4',
  '#4f7fe0',
  '#3667c9',
  '#2a56b0',
  '#20458f',
  '#16346e',
]

/** Neutral greys, so that only states have colour. */
const dark: MantineColorsTuple = [
  '#e6e8eb',
  '#b8bdc4',
  '#98a0aa',
  '#6c7580',
  '#454c56',
  '#343a43',
  '#262b32',
  '#1b1f25',
  '#14171c',
  '#0e1013',
]

const dialogProps = {
  transitionProps: { duration: 100 },
  closeButtonProps: { 'aria-label': 'Close' },
}

export const theme = createTheme({
  primaryColor: 'accent',
  primaryShade: 6,
  colors: { accent, dark },
  defaultRadius: 'sm',
  fontFamily: "'Inter Variable', system-ui, -apple-system, 'Segoe UI', sans-serif",
  fontFamilyMonospace: "ui-monospace, 'SF Mono', 'Cascadia Mono', 'DejaVu Sans Mono', monospace",
  fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '16px', xl: '20px' },
  spacing: { xs: '4px', sm: '8px', md: '16px', lg: '24px', xl: '32px' },
  headings: {
    fontWeight: '600',
    sizes: {
      h1: { fontSize: '20px', lineHeight: '28px' },
      h2: { fontSize: '14px', lineHeight: '20px' },
      h3: { fontSize: '13px', lineHeight: '20px' },
    },
  },
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    Button: Button.extend({ defaultProps: { size: 'xs' } }),
    Badge: Badge.extend({
      defaultProps: { variant: 'light', tt: 'none', radius: 'sm' },
      // The background has the colour: a coloured text would be too pale on it.
      styles: { label: { color: 'var(--text)' } },
    }),
    Table: Table.extend({ defaultProps: { verticalSpacing: 6, horizontalSpacing: 'sm' } }),
    Tooltip: Tooltip.extend({
      defaultProps: {
        openDelay: 300,
        multiline: true,
        maw: 360,
        events: { hover: true, focus: true, touch: true },
      },
    }),
    Modal: Modal.extend({ defaultProps: dialogProps }),
    Drawer: Drawer.extend({ defaultProps: dialogProps }),
  },
})

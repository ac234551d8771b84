/** The style of the reference. One colour for links; the rest follows the colour scheme. */
export const referenceStyle = `
:root {
  color-scheme: light dark;
  --text: #1b1f24; --muted: #57606a; --line: #d8dee4; --back: #ffffff; --raised: #f6f8fa;
  --link: #0a5bc4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e6e8eb; --muted: #9aa4af; --line: #30363d; --back: #0f1216; --raised: #181c22;
    --link: #79b2ff;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; padding: 0 1rem 4rem; color: var(--text); background: var(--back);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word;
}
header, .columns { max-width: 72rem; margin: 0 auto; }
header { padding: 1.5rem 0 0.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 0.5rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 0.5rem; padding-bottom: 0.25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 0; line-height: 1.4; }
p { margin: 0.4rem 0; max-width: 46rem; }
a { color: var(--link); }
h3 a { color: inherit; text-decoration: none; }
h3 a:hover, h3 a:focus-visible { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
:target > h3, h2:target { border-left: 3px solid var(--link); padding-left: 0.5rem; }
code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 0.875em; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: 0.5rem; background: var(--back); padding: 0.25rem 0.5rem; }
main > section > ul { margin: 0.75rem 0; padding-left: 1.2rem; max-width: 46rem; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav > ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; padding: 0.5rem 0; }
nav ul ul { display: none; }
article { padding: 1rem 0 0.75rem; border-bottom: 1px solid var(--line); }
article:last-child { border-bottom: 0; }
.method {
  display: inline-block; min-width: 3.6rem; font-size: 0.8rem; font-weight: 700; color: var(--muted);
}
.facts, .type { color: var(--muted); font-size: 0.9rem; }
pre {
  margin: 0.6rem 0; padding: 0.6rem 0.8rem; overflow-x: auto; background: var(--raised);
  border: 1px solid var(--line); border-radius: 6px;
}
details { margin: 0.4rem 0; }
summary { cursor: pointer; font-weight: 600; font-size: 0.95rem; padding: 0.15rem 0; }
ul.fields { list-style: none; margin: 0.25rem 0 0.5rem; padding: 0 0 0 0.9rem; border-left: 1px solid var(--line); }
ul.fields > li { padding: 0.2rem 0; }
ul.fields p { margin: 0; font-size: 0.95rem; }
code.name { font-weight: 600; }
@media (min-width: 60rem) {
  .columns { display: grid; grid-template-columns: 14rem minmax(0, 1fr); gap: 2.5rem; }
  nav {
    position: sticky; top: 0; max-height: 100vh; overflow-y: auto; padding: 1rem 0; font-size: 0.9rem;
  }
  nav > ul { display: block; }
  nav > ul > li { margin-bottom: 0.6rem; }
  nav > ul > li > a { font-weight: 600; }
  nav ul ul { display: block; padding-left: 0.75rem; }
  nav a { text-decoration: none; }
  nav a:hover, nav a:focus-visible { text-decoration: underline; }
}
@media print { nav { display: none; } }
`

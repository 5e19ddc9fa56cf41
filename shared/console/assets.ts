// What the browser loads beside pages, as text: functions are bundled into one file each. Pages work without the script; with it they stay up to date.

export const style = String.raw`
:root {
  color-scheme: light dark;
  --text: light-dark(#1b1f24, #e3e6ea); --dim: light-dark(#59636e, #9aa4b0); --line: light-dark(#d5dae0, #343b44);
  --ground: light-dark(#ffffff, #14181d); --raised: light-dark(#f5f7f9, #1c2128); --accent: light-dark(#0a5cc0, #6cb0ff);
  --ok: light-dark(#17692b, #63c77c); --bad: light-dark(#b3261e, #ff8b82); --busy: light-dark(#7a5200, #e0b34f);
}
* { box-sizing: border-box; }
body { margin: 0; font: 14px/1.45 system-ui, sans-serif; color: var(--text); background: var(--ground); }
a { color: var(--accent); text-underline-offset: 2px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 8px; top: 8px; background: var(--ground); padding: 4px 8px; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 20px; padding: 8px 20px; border-bottom: 1px solid var(--line); background: var(--raised); }
.brand { font-weight: 700; color: inherit; text-decoration: none; }
header nav { display: flex; flex-wrap: wrap; gap: 4px 16px; }
header nav a { color: var(--dim); text-decoration: none; padding: 4px 0; border-bottom: 2px solid transparent; }
header nav a[aria-current] { color: var(--text); border-color: var(--accent); }
.user { display: flex; align-items: center; gap: 8px; margin-left: auto; color: var(--dim); min-width: 0; }
.user span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; max-width: 32ch; }
main { padding: 16px 20px 48px; max-width: 1600px; outline: none; }
h1 { font-size: 20px; margin: 0 0 12px; overflow-wrap: anywhere; }
h1 .badge { font-size: 14px; font-weight: 500; margin-left: 6px; }
h2 { font-size: 15px; margin: 24px 0 8px; }
small { color: var(--dim); font-size: 12px; }
button, input, select, textarea { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line); border-radius: 4px; padding: 5px 9px; max-width: 100%; }
button, .button { cursor: pointer; display: inline-block; background: var(--raised); color: var(--text); border: 1px solid var(--line); border-radius: 4px; padding: 5px 12px; text-decoration: none; }
button.main { background: var(--accent); border-color: var(--accent); color: var(--ground); }
button.danger { background: var(--bad); border-color: var(--bad); color: var(--ground); }
button.quiet { background: none; color: var(--dim); padding: 2px 8px; }
.filters { display: flex; flex-wrap: wrap; align-items: end; gap: 8px 12px; margin-bottom: 12px; }
.filters label { display: grid; gap: 2px; font-size: 12px; color: var(--dim); }
.filters label > * { height: 32px; font-size: 14px; color: var(--text); }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 4px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { text-align: left; padding: 6px 12px; border-bottom: 1px solid var(--line); vertical-align: top; unicode-bidi: isolate; }
tbody tr:last-child > * { border-bottom: 0; }
thead th { background: var(--raised); font-weight: 600; white-space: nowrap; font-size: 12px; }
thead a { color: inherit; }
tbody th { font-weight: 500; overflow-wrap: anywhere; min-width: 12ch; }
tbody tr:hover { background: var(--raised); }
.narrow { display: none; }
.number { text-align: right; white-space: nowrap; }
.badge { white-space: nowrap; }
.badge.ok { color: var(--ok); } .badge.bad { color: var(--bad); } .badge.busy { color: var(--busy); } .badge.idle { color: var(--dim); }
.progress { white-space: nowrap; margin-left: 8px; }
.progress small { margin-left: 6px; }
progress { width: 110px; height: 8px; accent-color: var(--accent); vertical-align: middle; }
.why { display: block; max-width: 90ch; overflow-wrap: anywhere; }
.pager, .actions { display: flex; flex-wrap: wrap; gap: 8px; margin: 12px 0; align-items: center; }
.actions form { display: contents; }
td.actions { display: table-cell; } td.actions > * { margin: 0 4px 6px 0; }
.notice { border: 1px solid var(--line); border-left: 4px solid var(--accent); padding: 8px 12px; border-radius: 4px; max-width: 110ch; overflow-wrap: anywhere; }
.notice.error { border-left-color: var(--bad); }
.empty { color: var(--dim); padding: 24px 0; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 4px 20px; margin: 0; max-width: 120ch; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; unicode-bidi: isolate; }
details.object { margin-top: 24px; } summary { cursor: pointer; }
.steps { display: flex; flex-wrap: wrap; gap: 4px 20px; list-style: none; margin: 0 0 16px; padding: 0; color: var(--dim); }
.steps li[aria-current] { color: var(--text); font-weight: 600; }
.steps .past { color: var(--ok); }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: 4px; padding: 12px; overflow: auto; max-width: 110ch; font: 12.5px/1.5 ui-monospace, monospace; margin: 0 0 12px; }
code { font: 0.93em ui-monospace, monospace; overflow-wrap: anywhere; }
.field { display: grid; gap: 3px; margin-bottom: 12px; max-width: 560px; }
.field label { font-weight: 500; } .hint { margin: 0; color: var(--dim); font-size: 12px; }
textarea { width: 100%; min-height: 8em; font-family: ui-monospace, monospace; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 360px), 1fr)); gap: 8px 40px; }
.beside > * { min-width: 0; }
.drop { border: 1px dashed var(--line); border-radius: 4px; padding: 24px; } .drop.over { border-color: var(--accent); background: var(--raised); }
#live:empty { display: none; }
#live { position: fixed; bottom: 12px; left: 20px; margin: 0; padding: 6px 12px; background: var(--raised); border: 1px solid var(--line); border-radius: 4px; }
@media (max-width: 700px) {
  header, main { padding-left: 12px; padding-right: 12px; }
  .minor { display: none; } .narrow { display: block; } .progress { white-space: normal; margin: 0; } tbody th { min-width: 9ch; } th, td { padding: 6px 8px; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; } dd { margin-bottom: 8px; }
}
`;

export const script = String.raw`
'use strict';
const main = document.querySelector('main');
const announce = (text, link) => {
  const place = document.getElementById('live');
  place.replaceChildren(text);
  if (link) place.append(' ', Object.assign(document.createElement('a'), { href: location.href, textContent: link }));
};
const parse = (html) => {
  const template = document.createElement('template');
  template.innerHTML = html;
  return template.content.firstElementChild;
};
/* The page as it is now, without losing what has the focus. */
let isFetching = false;
const refresh = async () => {
  if (isFetching || main.contains(document.activeElement) && document.activeElement.matches('input, textarea, select')) return;
  isFetching = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: 'text/html' } });
    if (answer.redirected) return location.reload();
    if (!answer.ok) return announce('The page could not be updated.', 'Reload');
    const next = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main');
    const focused = document.activeElement && document.activeElement.id;
    main.replaceChildren(...next.childNodes);
    if (focused) document.getElementById(focused)?.focus();
    announce('');
  } catch {
    announce('No connection: what is shown may be out of date.', 'Reload');
  } finally {
    isFetching = false;
  }
};
let added = 0;
const changeRow = ({ id, html, isNew }) => {
  const row = document.getElementById(id);
  if (row && html === '') row.remove();
  else if (row && !row.contains(document.activeElement)) row.replaceWith(parse(html));
  else if (!row && html !== '' && isNew) announce((added += 1) + ' new: ', 'Show');
};
let source;
let timer;
const later = (milliseconds) => {
  clearTimeout(timer);
  timer = setTimeout(refresh, milliseconds);
};
const open = () => {
  if (!main.dataset.live || source || document.hidden) return;
  source = new EventSource(main.dataset.live);
  source.addEventListener('row', ({ data }) => changeRow(JSON.parse(data)));
  source.addEventListener('changed', () => later(300));
  /* A stream that ends may have missed something. */
  source.addEventListener('ended', () => { close(); refresh().then(() => setTimeout(reopen, 2000)); });
  source.onerror = () => {
    if (source && source.readyState === EventSource.CLOSED) { close(); later(10000); setTimeout(reopen, 10000); }
  };
};
const close = () => { source?.close(); source = undefined; };
const reopen = async () => {
  close();
  const answer = await fetch(location.href).catch(() => undefined);
  if (answer?.redirected) return location.reload();
  const next = answer?.ok && new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main');
  if (next?.dataset.live) main.dataset.live = next.dataset.live;
  open();
};
document.addEventListener('visibilitychange', () => (document.hidden ? close() : main.dataset.live && refresh().then(reopen)));
addEventListener('pagehide', close);
open();
for (const button of document.querySelectorAll('button[data-copy]'))
  button.addEventListener('click', () =>
    navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent).then(() => announce('Copied.')));
`;

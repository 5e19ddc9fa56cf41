import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { fileOf } from '#shared/exchange/upload/file-part.ts';

const formOf = (type: string, body: string): Request =>
  new Request('http://x', { method: 'POST', headers: { 'content-type': type }, body });
const part = (name: string): string =>
  `--b\r\nContent-Disposition: form-data; name="${name}"; filename="d.img"\r\n\r\nbytes\r\n`;

it.each([
  ['a form without a boundary', 'multipart/form-data', part('chunk'), /cannot be read/],
  ['a form that is cut off', 'multipart/form-data; boundary=b', '--b\r\nContent-Dis', /cannot be read/],
  ['a form without a file', 'multipart/form-data; boundary=b', `${part('other')}--b--\r\n`, /has no file/],
])('%s is rejected with a message', async (_what, type, body, message) => {
  await expect(fileOf(formOf(type, body), 'either')).rejects.toMatchObject({ status: 400, message });
});

it('finds the file in a form', async () => {
  const body = `${part('other')}${part('chunk')}--b--\r\n`;
  const { stream } = await fileOf(formOf('multipart/form-data; boundary=b', body), 'either');
  expect(await text(stream)).toBe('bytes');
});

it('accepts a file whose part has no file name', async () => {
  const unnamed = part('chunk').replace('; filename="d.img"', '');
  const { stream } = await fileOf(formOf('multipart/form-data; boundary=b', `${unnamed}--b--\r\n`), 'either');
  expect(await text(stream)).toBe('bytes');
});

it('fails with a message on a truncated file, and does not mistake it for a complete one', async () => {
  const { stream } = await fileOf(formOf('multipart/form-data; boundary=b', part('chunk').slice(0, -4)), 'either');
  await expect(text(stream)).rejects.toMatchObject({ status: 400, message: /cut off/ });
});

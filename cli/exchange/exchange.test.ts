// A transfer function that misbehaves, and what becomes of the file.
import { readFile, stat, writeFile } from 'node:fs/promises';
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fetchFile, nameFrom } from '#cli/exchange/fetch.ts';
import { sendFile } from '#cli/exchange/send.ts';
import { temporaryDirectory } from '#test/support/directory.ts';

const dir = temporaryDirectory();
const dispatcher = new Agent();
let server: Server;
let url = '';
let answer: (request: IncomingMessage, response: ServerResponse) => void;
beforeEach(async () => {
  server = createServer((request, response) => answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const common = () => ({
  connection: { to: () => dispatcher },
  signal: new AbortController().signal,
  tries: 0,
  onRetry: () => undefined,
  onProgress: () => undefined,
  getTicket: () => Promise.resolve({ url: `${url}/x`, headers: { authorization: 'Bearer x' } }),
});

describe('a download', () => {
  const fetchTo = (file: string | undefined) => fetchFile({ ...common(), file, folder: '', query: 'format=raw' });
  const begun = async (name: string, bytes: string, etag: string): Promise<string> => {
    const file = join(dir, name);
    await Promise.all([writeFile(`${file}.part`, bytes), writeFile(`${file}.part.etag`, etag)]);
    return file;
  };

  it('goes on where it was', async () => {
    const file = await begun('on', 'abc', '"1"');
    answer = ({ headers }, response) => {
      expect([headers.range, headers['if-range']]).toEqual(['bytes=3-', '"1"']);
      response.writeHead(206, { etag: '"1"', 'content-range': 'bytes 3-5/6', 'content-length': '3' }).end('def');
    };
    await fetchTo(file);
    expect(await readFile(file, 'utf8')).toBe('abcdef');
  });

  it('never has bytes of one file beside the tag of another', async () => {
    const file = await begun('cut', 'old bytes', '"old"');
    answer = (_request, response) => {
      response.writeHead(200, { etag: '"new"', 'content-length': '6' }).write('abc', () => response.destroy());
    };
    await expect(fetchTo(file)).rejects.toThrow('given up');
    expect('abc'.startsWith(await readFile(`${file}.part`, 'utf8'))).toBe(true);
    expect(await readFile(`${file}.part.etag`, 'utf8')).toBe('"new"');
  });

  it.each([
    ['whole', '*/3', /^abc$/],
    ['too long', '*/2', /the download starts over/],
  ])('of which all was there is put in place only where it is %s', async (name, range, outcome) => {
    const file = await begun(name, 'abc', '"1"');
    answer = (_request, response) => response.writeHead(416, { 'content-range': `bytes ${range}` }).end();
    const read = () => readFile(file, 'utf8');
    expect(await fetchTo(file).then(read, String)).toMatch(outcome);
  });

  it('takes its name from an answer that comes at the second try, and does not read the file for it', async () => {
    let asked = 0;
    const name = join(dir, 'named').replaceAll('/', '_').slice(1);
    answer = ({ method }, response) => {
      asked += 1;
      const headers = { 'content-disposition': `attachment; filename="${name}"` };
      if (method === 'HEAD') response.writeHead(503).end();
      else if (asked === 2) response.writeHead(200, headers).write(Buffer.alloc(1024));
      else response.writeHead(500).end('enough');
    };
    await expect(fetchTo(undefined)).rejects.toThrow('enough');
    expect(asked).toBe(3);
  });

  it.each([
    ['attachment; filename="a.raw"', 'a.raw'],
    [`attachment; filename="_.raw"; filename*=UTF-8''%C3%A9.raw`, 'é.raw'],
    [`attachment; filename="b.raw"; filename*=UTF-8''%E9.raw`, 'b.raw'],
    ['attachment; filename="../.bashrc"', '_.bashrc'],
    ['attachment; filename="..bashrc"', 'bashrc'],
    [`attachment; filename*=UTF-8''%1B%5B2J.raw`, '_[2J.raw'],
    [undefined, 'disk'],
  ])('called %s is saved as %s', (disposition, name) => expect(nameFrom(disposition)).toBe(name));
});

describe('an upload', () => {
  const checksum = 'sha256:ab';
  const send = async (size: number, tries = 0) => {
    const file = join(dir, 'file');
    await writeFile(file, 'abc');
    expect((await stat(file)).size).toBe(3);
    return sendFile({ ...common(), tries, file, size, checksum, virtualSize: undefined });
  };
  const standing = (response: ServerResponse, more: object) =>
    response.writeHead(200).end(JSON.stringify({ message: 'uploaded already', ...more }));

  it.each([
    ['the same file', { digest: checksum }, 'done'],
    ['another file', { digest: 'sha256:cd' }, 'uploaded already'],
    ['who knows what', {}, 'uploaded already'],
  ])('into what was made from %s', async (_what, more, outcome) => {
    answer = (_request, response) => standing(response, { stage: 'done', ...more });
    expect(await send(3).then(() => 'done', String)).toContain(outcome);
  });

  it.each([
    ['the same file', { digest: checksum }, 'done'],
    ['another file', { digest: 'sha256:cd' }, 'uploaded already'],
  ])('that ends between a look and what follows: made from %s', async (_what, more, outcome) => {
    const refuse = (response: ServerResponse) =>
      response.writeHead(409).end(JSON.stringify({ message: 'uploaded already: make a new one' }));
    const done = (response: ServerResponse) => standing(response, { stage: 'done', ...more });
    const open = (response: ServerResponse) => standing(response, { stage: 'open' });
    for (const answers of [
      [refuse, done],
      [open, refuse, done],
    ]) {
      answer = (request, response) => void request.resume().on('end', () => (answers.shift() ?? done)(response));
      expect(await send(3).then(() => 'done', String)).toContain(outcome);
    }
  });

  it('of a file that has become shorter ends', async () => {
    answer = (request, response) => {
      if (request.method === 'GET')
        standing(response, { stage: 'open', upload: { id: 'a', offset: 3, length: 5, checksum } });
      else request.resume().on('end', () => response.writeHead(204, { 'upload-offset': '3' }).end());
    };
    await expect(send(5)).rejects.toThrow('3 of 5 bytes arrived');
  });

  it('of a file that cannot be read ends', async () => {
    answer = (request, response) => {
      if (request.method === 'GET')
        standing(response, { stage: 'open', upload: { id: 'a', offset: 0, length: 3, checksum } });
      else request.resume().on('end', () => response.writeHead(204, { 'upload-offset': '3' }).end());
    };
    const gone = { ...common(), file: join(dir, 'gone'), size: 3, checksum, virtualSize: undefined };
    await expect(sendFile(gone)).rejects.toThrow(/given up: ENOENT/);
  });

  it('looks again where more has arrived than it knew', async () => {
    let offset = 0;
    answer = (request, response) => {
      if (request.method === 'GET')
        return void standing(response, { stage: 'open', upload: { id: 'a', offset, length: 3, checksum } });
      const isThere = Number(request.headers['upload-offset']) === 2;
      offset = 2;
      request.resume().on('end', () => response.writeHead(isThere ? 204 : 409, { 'upload-offset': '3' }).end());
    };
    await send(3, 1);
    expect(offset).toBe(2);
  });

  it('is given up where a proxy takes some of it each time and none of it arrives', async () => {
    let tries = 0;
    answer = (request, response) => {
      if (request.method === 'GET')
        return void standing(response, { stage: 'open', upload: { id: 'a', offset: 0, length: 3, checksum } });
      tries += 1;
      request.resume().on('end', () => response.writeHead(500).end('<html>nginx</html>'));
    };
    await expect(send(3, 1)).rejects.toThrow(/given up: 500 from a proxy before the transfer function/);
    expect(tries).toBe(2);
  });

  it('is cut where nothing moves, and goes on', async () => {
    let patches = 0;
    answer = (request, response) => {
      const upload = { id: 'a', offset: 0, length: 3, checksum };
      if (request.method === 'GET') return void standing(response, { stage: 'open', upload });
      // As a machine that has gone without a word: it has taken all of it, and says nothing.
      if ((patches += 1) > 1) request.resume().on('end', () => response.writeHead(204, { 'upload-offset': '3' }).end());
    };
    const file = join(dir, 'file');
    await writeFile(file, 'abc');
    await sendFile({ ...common(), tries: 1, file, size: 3, checksum, virtualSize: undefined, silenceMs: 300 });
    expect(patches).toBe(2);
  });

  it('waits for the disk of a file that has arrived no longer than it was told', async () => {
    answer = (_request, response) =>
      standing(response, { stage: 'open', upload: { id: 'a', offset: 3, length: 3, checksum } });
    const arrived = {
      ...common(),
      file: join(dir, 'file'),
      size: 3,
      checksum,
      virtualSize: undefined,
      patienceMs: 100,
    };
    await expect(sendFile(arrived)).rejects.toThrow('all of the file has arrived');
  });

  it('waits for the disk of a file that has arrived', async () => {
    let looks = 0;
    answer = (request, response) => {
      if (request.method !== 'GET') return void response.writeHead(500).end();
      looks += 1;
      const upload = { id: 'a', offset: 3, length: 3, checksum };
      standing(response, looks < 2 ? { stage: 'open', upload } : { stage: 'done', digest: checksum });
    };
    await send(3);
    expect(looks).toBe(2);
  });
});

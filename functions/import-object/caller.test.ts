import { describe, expect, it } from 'vitest';
import { withStores } from '#functions/import-object/app.ts';

const answering = (status: number) => ({ fetch: () => new Response(null, { status }) });
const plain = () => new Request('http://import-object/', { method: 'POST', body: '{}' });
const event = (headers: Record<string, string> = {}) =>
  new Request('http://import-object/', { method: 'POST', headers: { 'ce-specversion': '1.0', ...headers } });

describe('import-object where callers are asked who they are', () => {
  it('takes plain notifications by the token that stores share with it, and asks all others', async () => {
    const app = withStores(answering(204), answering(401), 'shared');
    expect([(await app.fetch(plain())).status, (await app.fetch(event())).status]).toEqual([204, 401]);
  });

  it('takes an event that shows the token, and asks one that shows another', async () => {
    const app = withStores(answering(204), answering(401), 'shared');
    const answers = ['Bearer shared', 'Bearer guessed', 'shared'].map(async (authorization) =>
      app.fetch(event({ authorization })),
    );
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([204, 401, 401]);
  });

  it('asks everybody where no such token is set', async () => {
    const app = withStores(answering(204), answering(401), undefined);
    expect([(await app.fetch(plain())).status, (await app.fetch(event())).status]).toEqual([401, 401]);
  });
});

// What the Worker does before it answers as the functions do; test/flows/admission*.test.ts ask it every rule under workerd.
import { describe, expect, it } from 'vitest';
import worker from '#infra/workers/admission/worker.ts';
import { aHarvesterImage, aReview } from '#test/support/admission.ts';

const env = { KUBERNETES_URL: 'http://127.0.0.1:9', KUBERNETES_TOKEN: 'of-the-account', WEBHOOK_TOKEN: 'shared' };
const ask = (path: string, more: { readonly env?: object; readonly token?: string } = {}) =>
  worker.fetch(
    new Request(`https://worker.example${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${more.token ?? 'shared'}`, 'content-type': 'application/json' },
      body: JSON.stringify(aReview({ object: aHarvesterImage() })),
    }),
    { ...env, ...more.env },
  );

describe('the Worker for admission', () => {
  it.each(['/validate', '/mutate'])('rejects requests to %s without the token', async (path) => {
    const answer = await ask(path, { token: 'guessed' });
    expect([answer.status, await answer.text()]).toEqual([
      401,
      'the Authorization header is not "Bearer " and the token of WEBHOOK_TOKEN',
    ]);
  });

  it('leaves the decision to the failure policy while the API server is unreachable', async () => {
    const answer = await ask('/validate');
    expect(answer.status).toBe(500);
    expect(await answer.text()).toContain('validate could not decide');
  });

  it.each([
    [{ KUBERNETES_URL: 'http://kubernetes.example' }, 'KUBERNETES_URL: must begin with https://'],
    [{ KUBERNETES_TOKEN: undefined }, 'KUBERNETES_TOKEN: is required'],
    [{ WEBHOOK_TOKEN: '' }, 'WEBHOOK_TOKEN: is required'],
  ])('reports invalid settings: %j', async (wrong, words) => {
    await expect(ask('/validate', { env: wrong })).rejects.toThrow(words);
  });
});

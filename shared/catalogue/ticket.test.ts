import { describe, expect, it } from 'vitest';
import { type TicketOptions, getTicket } from '#shared/catalogue/ticket.ts';
import { NotFound } from '#shared/runtime/errors.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const target = { plural: 'virtualmachineimages', namespace: 'ns', name: 'disk' } as const;

/** What the API server hands back for an UploadTokenRequest. */
type Answer = (asked: object) => object;
const ours: Answer = (asked) => ({ ...asked, status: { token: 'ticket', url: 'https://transfer.example' } });
/** CDI reads `pvcName` alone, and gives a token whether there is such a claim or not. */
const theirs: Answer = (asked) => ({ ...asked, spec: { pvcName: '' }, status: { token: 'of-cdi' } });
const nobodys: Answer = () => {
  throw new NotFound('the server could not find the requested resource');
};

const ticketOf = (answer: Answer, { server, bearer }: { server?: string; bearer?: string }) => {
  const kube = { ...createMemoryKube(), create: async (_type: unknown, asked: object) => answer(asked) };
  const options = { operation: 'upload', target, server, bearer: () => Promise.resolve(bearer) } as const;
  return getTicket({ ...options, kube: kube as unknown as TicketOptions['kube'] });
};

describe('leave to send a file', () => {
  it.each<[string, Answer, Parameters<typeof ticketOf>[1], [base: string, token: string]]>([
    ['is given by the cluster, which says where', ours, {}, ['https://transfer.example', 'ticket']],
    ['is good where the caller says', ours, { server: 'http://near/' }, ['http://near', 'ticket']],
    [
      "is the caller's own token beside a CDI",
      theirs,
      { server: 'http://near', bearer: 'mine' },
      ['http://near', 'mine'],
    ],
    [
      "is the caller's own token without the API",
      nobodys,
      { server: 'http://near', bearer: 'mine' },
      ['http://near', 'mine'],
    ],
  ])('%s', async (_what, answer, around, [base, token]) => {
    expect(await ticketOf(answer, around)).toEqual({
      url: `${base}/files/virtualmachineimages/ns/disk`,
      headers: { authorization: `Bearer ${token}` },
    });
  });

  it.each<[string, Answer, Parameters<typeof ticketOf>[1], RegExp]>([
    [
      'the address of the transfer function',
      theirs,
      { bearer: 'mine' },
      /URL of the transfer function with --transfer-url/,
    ],
    ['a token', theirs, { server: 'http://near' }, /a kubeconfig whose user has a token/],
    ['the address, without the API', nobodys, {}, /--transfer-url/],
  ])('says that it lacks %s', async (_what, answer, around, words) => {
    await expect(ticketOf(answer, around)).rejects.toThrow(words);
  });
});

import { describe, expect, it } from 'vitest';
import { grantFor, isAllowed, isGranted, toGrantText, type UsedSource } from './permissions.ts';
import { annotations, unguardedNamespaces } from '#shared/api/names.ts';
import { clusterOf, rightOf, withAccess } from '#test/support/admission.ts';

const jane = { username: 'jane', uid: 'u-1', groups: ['dev'], extra: { scopes: ['a'] } };
const claim: UsedSource = { use: 'clone-claim', namespace: 'golden', name: 'fedora' };
const snapshot: UsedSource = { ...claim, use: 'clone-snapshot' };

const having = (...rights: readonly string[]) =>
  withAccess(clusterOf(), (question) => rights.includes(rightOf(question)));

describe('an access review', () => {
  it('contains the user with everything the API server reported about them', async () => {
    const kube = having('create datavolumes/source golden/fedora');
    const wish = {
      verb: 'create',
      group: 'cdi.kubevirt.io',
      resource: 'datavolumes',
      subresource: 'source',
      namespace: 'golden',
      name: 'fedora',
    };
    expect(await isAllowed(kube, jane, wish)).toBe(true);
    expect(kube.questions).toEqual([
      { user: 'jane', uid: 'u-1', groups: ['dev'], extra: { scopes: ['a'] }, resourceAttributes: wish },
    ]);
  });
});

describe('the right to a source', () => {
  const get = 'get persistentvolumeclaims golden';
  const image = 'get virtualmachineimages golden';
  it.each<[what: string, source: UsedSource, rights: readonly string[], granted: string | undefined]>([
    ['cloning, in the whole namespace', claim, ['create datavolumes/source golden/*'], '*'],
    ['cloning, of one name', claim, ['create datavolumes/source golden/fedora'], 'fedora'],
    ['cloning, of another name', claim, ['create datavolumes/source golden/other'], undefined],
    ['cloning, in another namespace', claim, ['create datavolumes/source other/*'], undefined],
    ['running pods beside a claim', claim, ['create pods golden/*'], '*'],
    ['restoring a snapshot', snapshot, ['create datavolumes/source golden/*'], '*'],
    [
      'running pods and making claims beside a snapshot',
      snapshot,
      ['create pods golden/*', 'create persistentvolumeclaims golden/*'],
      '*',
    ],
    // The original checks the resource "pvcs", for which nobody can have a permission.
    ['running pods alone beside a snapshot', snapshot, ['create pods golden/*', 'create pvcs golden/*'], undefined],
    ['seeing a claim to export', { ...claim, use: 'export-claim' }, [`${get}/fedora`], 'fedora'],
    ['cloning a claim to export', { ...claim, use: 'export-claim' }, ['create datavolumes/source golden/*'], undefined],
    ['seeing an image', { ...claim, use: 'use-image' }, [`${image}/*`], '*'],
    ['seeing claims, of an image', { ...claim, use: 'use-image' }, [`${get}/*`], undefined],
    ['nothing', claim, [], undefined],
  ])('%s', async (_what, source, rights, name) => {
    const grant = await grantFor(having(...rights), jane, source);
    expect(grant).toEqual(name === undefined ? undefined : { use: source.use, namespace: 'golden', name });
  });

  it('sends one request when the whole namespace is allowed, and never more than six', async () => {
    const open = having('create datavolumes/source golden/*');
    await grantFor(open, jane, snapshot);
    const shut = withAccess(clusterOf(), () => false);
    await grantFor(shut, jane, snapshot);
    expect([open.questions.length, shut.questions.length <= 6]).toEqual([1, true]);
  });
});

describe('a grant', () => {
  const object = (text: string | undefined, namespace = 'tenant') => ({
    apiVersion: 'v1',
    kind: 'X',
    metadata: { name: 'x', namespace, annotations: text === undefined ? {} : { [annotations.granted]: text } },
  });
  const all = toGrantText([{ use: 'clone-claim', namespace: 'golden', name: '*' }]);
  const one = toGrantText([{ use: 'clone-claim', namespace: 'golden', name: 'fedora' }]);

  it.each<[what: string, text: string | undefined, source: UsedSource, holds: boolean]>([
    ['for a namespace applies to its objects', all, claim, true],
    ['of a namespace holds for no other', all, { ...claim, namespace: 'other' }, false],
    ['of one name holds for it', one, claim, true],
    ['of one name holds for no other', one, { ...claim, name: 'debian' }, false],
    ['of claims holds for no snapshot', all, snapshot, false],
    ['is not needed in the own namespace', undefined, { ...claim, namespace: 'tenant' }, true],
    ['that is missing holds for nothing', undefined, claim, false],
    ['that is not valid JSON holds for nothing', '{', claim, false],
    ['that is not a list applies to nothing', '{"use":"clone-claim"}', claim, false],
  ])('%s', (_what, text, source, holds) => {
    expect(isGranted(object(text), source)).toBe(holds);
  });

  it.each(unguardedNamespaces)('is not trusted in %s, where it was not verified', (namespace) => {
    expect(isGranted(object(all, namespace), claim)).toBe(false);
  });

  it('has no annotation when there is nothing to grant', () => {
    expect(toGrantText([])).toBeUndefined();
  });
});

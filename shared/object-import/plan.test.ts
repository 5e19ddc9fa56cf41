import { describe, expect, it } from 'vitest';
import type { DataSource } from '#shared/api/cdi/data-source.ts';
import type { HyperCloudImage } from '#shared/api/hypercloud/image.ts';
import { type ImportAction, type Observed, planImport } from '#shared/object-import/plan.ts';
import { ImportRule } from '#shared/object-import/rules.ts';

const rule = ImportRule.parse({ bucket: 'golden', namespace: 'default', storageClassName: 'local' });
const id = { bucket: 'golden', key: 'jammy.img', hash: 'abc' };
const description = {
  name: 'jammy',
  displayName: 'jammy.img',
  checksum: undefined,
  labels: { os: 'ubuntu' },
  version: '2',
};

const marks = {
  'bullion.dev/object-bucket': 'golden',
  'bullion.dev/object-key': 'jammy.img',
  'bullion.dev/display-name': 'jammy.img',
  'bullion.dev/object-labels': 'os',
};

const aVersion = (version: string, ready: boolean, made = version): HyperCloudImage => ({
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineImage',
  metadata: {
    name: `jammy-${version}`,
    creationTimestamp: `2026-01-0${made}T00:00:00Z`,
    labels: { os: 'ubuntu', 'bullion.dev/object': 'abc', 'bullion.dev/object-version': version },
    annotations: marks,
  },
  spec: { source: { objectStore: { bucketName: 'golden', objectName: 'jammy.img' } } },
  status: {
    children: { volume: `jammy-${version}-image-pvc` },
    conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
  },
});

const aName = (version: string, object = 'abc'): DataSource => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataSource',
  metadata: { name: 'jammy', labels: { os: 'ubuntu', 'bullion.dev/object': object }, annotations: marks },
  spec: { source: { pvc: { name: `jammy-${version}-image-pvc`, namespace: 'default' } } },
});

const said = (observed: Partial<Observed>): readonly string[] =>
  planImport({ rule, id, description, versions: [], dataSource: undefined, ...observed }).map(wordsOf);

const wordsOf = (action: ImportAction): string => {
  switch (action.do) {
    case 'create-image':
    case 'delete-image':
      return `${action.do} ${action.image.metadata.name}`;
    case 'point':
      return `point ${action.claim}`;
    case 'create-data-source':
      return `${action.do} ${action.dataSource.spec.source.pvc?.name}`;
    default:
      return action.do;
  }
};

describe('the plan for an object', () => {
  it.each<[string, Partial<Observed>, readonly string[]]>([
    ['new: an image', {}, ['create-image jammy-2']],
    ['being imported: nothing', { versions: [aVersion('2', false)] }, []],
    ['imported: a name for it', { versions: [aVersion('2', true)] }, ['create-data-source jammy-2-image-pvc']],
    ['settled: nothing', { versions: [aVersion('2', true)], dataSource: aName('2') }, []],
    [
      'replaced: the old one stays in use',
      { versions: [aVersion('1', true)], dataSource: aName('1') },
      ['create-image jammy-2'],
    ],
    [
      'replaced while it was imported: the import is superseded',
      { versions: [aVersion('1', false), aVersion('2', false)] },
      ['delete-image jammy-1'],
    ],
    [
      'replaced before the new image is there: nothing is taken away yet',
      { versions: [aVersion('1', false)] },
      ['create-image jammy-2'],
    ],
    [
      'imported again: the name refers to the new one, the old one is kept',
      { versions: [aVersion('1', true), aVersion('2', true)], dataSource: aName('1') },
      ['point jammy-2-image-pvc'],
    ],
    [
      'moved on: one old version is kept',
      { versions: [aVersion('1', true), aVersion('2', true)], dataSource: aName('2') },
      [],
    ],
    [
      'moved on: more than one is not',
      {
        versions: [aVersion('0', true, '1'), aVersion('1', true, '2'), aVersion('2', true, '3')],
        dataSource: aName('2'),
      },
      ['delete-image jammy-0'],
    ],
    [
      'put back as it was: the name goes back',
      { versions: [aVersion('3', true), aVersion('2', true)], dataSource: aName('3') },
      ['point jammy-2-image-pvc'],
    ],
    [
      'removed, and images are kept',
      { description: undefined, versions: [aVersion('2', true)], dataSource: aName('2') },
      [],
    ],
    [
      'removed, and images go: the name first',
      {
        rule: { ...rule, onDelete: 'delete' },
        description: undefined,
        versions: [aVersion('1', true), aVersion('2', true)],
        dataSource: aName('2'),
      },
      ['delete-data-source', 'delete-image jammy-1', 'delete-image jammy-2'],
    ],
    ['of a name that another object has: words', { dataSource: aName('1', 'other') }, ['complain']],
    [
      'removed, of a name that another object has: nothing',
      { description: undefined, dataSource: aName('1', 'other') },
      [],
    ],
  ])('%s', (_, observed, actions) => expect(said(observed)).toEqual(actions));

  it('updates labels and display name, and keeps those of others', () => {
    const [image] = [aVersion('2', true)];
    const dataSource = aName('2');
    const observed = { rule, id, versions: [image!], dataSource };
    const labelled = { ...description, displayName: 'Jammy', labels: { tier: 'gold' } };
    const marked = {
      labels: { os: null, tier: 'gold' },
      annotations: { 'bullion.dev/display-name': 'Jammy', 'bullion.dev/object-labels': 'tier' },
    };
    expect(planImport({ ...observed, description: labelled })).toEqual([
      { do: 'mark-image', image, marks: marked },
      { do: 'mark-data-source', dataSource, marks: marked },
    ]);
    const mine = {
      ...dataSource,
      metadata: { ...dataSource.metadata, labels: { ...dataSource.metadata.labels, mine: 'x' } },
    };
    expect(planImport({ ...observed, dataSource: mine, description })).toEqual([]);
  });

  it('records the source of the object', () => {
    const [action] = planImport({ rule, id, description, versions: [], dataSource: undefined });
    expect(action).toMatchObject({
      image: {
        metadata: {
          name: 'jammy-2',
          namespace: 'default',
          labels: { os: 'ubuntu', 'bullion.dev/object': 'abc', 'bullion.dev/object-version': '2' },
          annotations: { 'bullion.dev/object-bucket': 'golden', 'bullion.dev/object-key': 'jammy.img' },
        },
        spec: { storageClassName: 'local', source: { objectStore: { bucketName: 'golden', objectName: 'jammy.img' } } },
      },
    });
  });
});

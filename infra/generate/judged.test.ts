// What Knative's own webhooks would report about our manifests, with its defaults and with the settings that components require: they are stricter than its CRDs.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { findKnative } from '#local-cluster/envtest/knative/assets.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { infraDir, overlayWith, renderText } from '#test/support/overlay.ts';
import { hasKubectl } from '#test/support/tools.ts';

const judge = findKnative(process.env)?.judge;
const canJudge = judge !== undefined && hasKubectl();
if (!canJudge) console.warn('manifests are not judged by Knative: npm run envtest:knative builds what does');

interface Judgement {
  readonly kind: string;
  readonly name: string;
  readonly fault: string;
}

/** The ConfigMap `config-features`, as far as it differs from the defaults. */
interface Features {
  readonly eventing?: Readonly<Record<string, string>>;
  readonly serving?: Readonly<Record<string, string>>;
}

const judgeAll = (objects: readonly KubeObject[], features: Features): readonly Judgement[] => {
  const input = objects.map((object) => `${JSON.stringify(object)}\n`).join('');
  const { status, stdout, stderr } = spawnSync(judge ?? '', [JSON.stringify(features)], { input, encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Judgement);
};

const read = (folder: string): readonly KubeObject[] =>
  parseAllDocuments(renderText(folder))
    .map((document) => document.toJS() as KubeObject)
    .filter(({ apiVersion }) => /(^|\.)knative\.dev\//.test(apiVersion));

const faultsOf = (folder: string, features: Features = {}): readonly string[] => {
  const judged = judgeAll(read(folder), features);
  const kinds = ['Broker', 'Trigger', 'ApiServerSource', 'PingSource', 'SinkBinding', 'Service'];
  expect(judged.map(({ kind }) => kind)).toEqual(expect.arrayContaining(kinds));
  return judged.filter(({ fault }) => fault !== '').map(({ kind, name, fault }) => `${kind} ${name}: ${fault}`);
};

describe.skipIf(!canJudge)('Knative accepts', () => {
  const folders: string[] = [];
  const withComponent = (...names: readonly string[]): string => {
    const folder = overlayWith(names);
    folders.push(folder);
    return folder;
  };
  afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

  it.each(['', 'overlays/minimal', 'overlays/production', 'overlays/openshift'])('infra/%s as installed', (folder) =>
    expect(faultsOf(join(infraDir, folder))).toEqual([]),
  );

  it.each<[string, Features]>([
    ['monitoring', {}],
    ['cdi', {}],
    ['oidc', { eventing: { 'authentication-oidc': 'enabled' } }],
    ['retry-after', { eventing: { 'delivery-retryafter': 'enabled' } }],
    [
      'nfs-backups',
      {
        serving: {
          'kubernetes.podspec-persistent-volume-claim': 'enabled',
          'kubernetes.podspec-persistent-volume-write': 'enabled',
        },
      },
    ],
  ])('the component %s with what docs/install.md says it needs', (name, features) => {
    expect(faultsOf(withComponent(name), features)).toEqual([]);
  });

  it.each(['retry-after', 'nfs-backups'])('the component %s only with them', (name) => {
    expect(faultsOf(withComponent(name))).not.toEqual([]);
  });
});

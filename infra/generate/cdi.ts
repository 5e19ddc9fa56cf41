// The component for a cluster with a CDI: what would be ours of its kinds is left out. Called by kustomize.ts.
import { parseAllDocuments } from 'yaml';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import { type Manifest, partOf } from '#infra/generate/manifest.ts';
import type { Outputs } from '#infra/generate/outputs.ts';
import { add, patch } from '#infra/generate/patches.ts';
import { admissionFunctions } from '#infra/generate/wiring.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';

interface Webhooks extends Manifest {
  readonly webhooks: readonly { readonly rules: readonly { readonly apiGroups: readonly string[] }[] }[];
}

const setting = { name: 'CDI', value: 'use' };

/** The definitions are CDI's, its own admission judges its kinds, and no function of ours moves them. */
export const buildCdiPatches = (manifests: Outputs): readonly object[] => {
  const all = Object.values(manifests).flatMap((text) =>
    parseAllDocuments(text).map((document) => document.toJS() as Manifest),
  );
  return [
    ...all
      .filter(isDefinitionOfTheirs)
      .map(({ apiVersion, kind, metadata: { name } }) =>
        patch(kind, name, { $patch: 'delete', apiVersion, kind, metadata: { name } }),
      ),
    ...eventFunctions.map(({ name }) =>
      patch('Service', name, [add('/spec/template/spec/containers/0/env/-', setting)]),
    ),
    patch('Deployment', 'admission', {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'admission', labels: partOf('admission') },
      spec: { template: { spec: { containers: admissionFunctions.map(({ name }) => ({ name, env: [setting] })) } } },
    }),
    ...all
      .filter(({ kind }) => kind.endsWith('WebhookConfiguration'))
      .map((manifest) => patch(manifest.kind, undefined, [ownKindsAlone(manifest as Webhooks)])),
  ];
};

const isDefinitionOfTheirs = ({ kind, metadata }: Manifest): boolean =>
  kind === 'CustomResourceDefinition' && metadata.name.endsWith(`.${cdiGroup}`);

/** The first webhook is the one for objects of served kinds; the others keep what is golden, whoever's kind it is of. */
const ownKindsAlone = ({ webhooks }: Webhooks): object => ({
  op: 'replace',
  path: '/webhooks/0/rules',
  value: webhooks[0]?.rules.filter(({ apiGroups }) => !apiGroups.includes(cdiGroup)),
});

import { expect, it } from 'vitest';
import { TransferConfig, toServeSettings } from '#functions/transfer/config.ts';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { parseConfig } from '#shared/runtime/config.ts';

const owner = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'default', name: 'disk', uid: 'u-1' };
const source = { type: 'claim', claimName: 'disk', volumeMode: 'Block' } as const;

const podOf = (environment: Readonly<Record<string, string>>) => {
  const config = parseConfig(TransferConfig, { TRANSFER_URL: 'http://transfer', ...environment });
  return buildTransferJob({ mode: 'serve', owner, source, retries: 0 }, toServeSettings(config)).spec.template.spec;
};

it('runs the Jobs of downloads with the namespace, service account and resources of its settings', () => {
  const { containers, volumes, ...pod } = podOf({
    TRANSFER_NODE_SELECTOR: 'disktype=ssd',
    TRANSFER_TOLERATIONS: '[{"key":"storage","operator":"Exists"}]',
    TRANSFER_PRIORITY_CLASS: 'low',
    TRANSFER_SERVICE_ACCOUNT: 'mover',
    TRANSFER_DISK: '2Gi',
    TRANSFER_MEMORY: '1Gi',
    SCRATCH_STORAGE_CLASS: 'fast',
    SCRATCH_SIZE: '5Gi',
  });
  expect(pod).toMatchObject({
    nodeSelector: { disktype: 'ssd' },
    tolerations: [{ key: 'storage', operator: 'Exists' }],
    priorityClassName: 'low',
    serviceAccountName: 'mover',
  });
  expect(containers[0]?.resources).toMatchObject({ limits: { memory: '1Gi', 'ephemeral-storage': '2Gi' } });
  const [scratch] = volumes?.filter(({ name }) => name === 'scratch') ?? [];
  expect(scratch?.ephemeral?.volumeClaimTemplate.spec).toMatchObject({
    storageClassName: 'fast',
    resources: { requests: { storage: '5Gi' } },
  });
});

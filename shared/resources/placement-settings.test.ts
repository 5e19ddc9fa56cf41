// The settings of an operator for the placement of transfers, and the resulting pods.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { reconcileSettings } from '#shared/resources/settings.ts';
import { toPopulateSettings } from '#shared/resources/step-settings.ts';
import { parseConfig } from '#shared/runtime/config.ts';
import { imageRef } from '#test/support/builders.ts';

const podOf = (environment: Readonly<Record<string, string>>, pod: { readonly priorityClassName?: string } = {}) => {
  const settings = toPopulateSettings(parseConfig(z.object(reconcileSettings), environment));
  return buildTransferJob({ mode: 'inspect', owner: imageRef, source: { type: 'blank' }, retries: 0, pod }, settings)
    .spec.template.spec;
};

describe('the pods of transfers', () => {
  it('run on any node, with limits that a quota counts and temporary files on the disk of the node', () => {
    const pod = podOf({});
    expect(Object.keys(pod)).not.toEqual(expect.arrayContaining(['nodeSelector', 'tolerations', 'priorityClassName']));
    expect(pod.containers[0]?.resources).toEqual({
      requests: { cpu: '100m', memory: '128Mi' },
      limits: { cpu: '2', memory: '512Mi' },
    });
    expect(pod.volumes?.[0]).toEqual({ name: 'scratch', emptyDir: {} });
  });

  it('run where and with the priority that the operator configures', () => {
    const tolerations = [{ key: 'storage', operator: 'Exists', effect: 'NoSchedule' }];
    const environment = {
      TRANSFER_NODE_SELECTOR: 'disktype=ssd, zone=a',
      TRANSFER_TOLERATIONS: JSON.stringify(tolerations),
      TRANSFER_PRIORITY_CLASS: 'imports',
    };
    const placed = { nodeSelector: { disktype: 'ssd', zone: 'a' }, tolerations };
    expect(podOf(environment)).toMatchObject({ ...placed, priorityClassName: 'imports' });
    expect(podOf(environment, { priorityClassName: 'urgent' })).toMatchObject({ priorityClassName: 'urgent' });
  });

  it('keep temporary files on a claim of their own when the operator configures a class for it', () => {
    const spec = {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'fast',
      resources: { requests: { storage: '40Gi' } },
    };
    const pod = podOf({ SCRATCH_STORAGE_CLASS: 'fast', SCRATCH_SIZE: '40Gi', TRANSFER_DISK: '2Gi' });
    expect(pod.volumes?.[0]).toEqual({ name: 'scratch', ephemeral: { volumeClaimTemplate: { spec } } });
    expect(pod.containers[0]?.resources).toMatchObject({ limits: { 'ephemeral-storage': '2Gi' } });
  });

  it.each([
    ['TRANSFER_NODE_SELECTOR', 'ssd'],
    ['TRANSFER_TOLERATIONS', '{"key":"a"}'],
    ['TRANSFER_TOLERATIONS', '['],
    ['TRANSFER_TOLERATIONS', '[{"effect":"Never"}]'],
    ['SCRATCH_SIZE', 'plenty'],
    ['TRANSFER_DISK', '-1Gi'],
  ])('reject %s=%s, and name it', (variable, value) => {
    expect(() => podOf({ [variable]: value })).toThrow(variable);
  });
});

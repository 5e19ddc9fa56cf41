import { describe, expect, it } from 'vitest';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { imageRef, testSettings } from '#test/support/builders.ts';

const build = (into: Parameters<typeof buildTransferJob>[0]['backup']) => {
  const source = { type: 'claim', claimName: 'golden', volumeMode: 'Block' } as const;
  const job = buildTransferJob({ mode: 'backup', owner: imageRef, source, backup: into, retries: 3 }, testSettings);
  const { containers, volumes } = job.spec.template.spec;
  const text = containers[0]?.env?.find(({ name }) => name === 'BULLION_TRANSFER')?.value ?? '';
  return { spec: TransferSpec.parse(JSON.parse(text)), volumes, container: containers[0], job };
};
const place = { type: 's3', endpoint: 'https://store', region: 'r', bucket: 'b', key: 'data/' } as const;

describe('the Job of a backup', () => {
  it('reads the golden volume and writes to a bucket, with the Secret of its namespace', () => {
    const { spec, volumes, container, job } = build({
      into: { ...place, pathStyle: false, secretName: 'backup-target', caBundle: 'PEM' },
    });
    expect(spec).toMatchObject({
      mode: 'backup',
      source: { type: 'volume' },
      backup: { into: { type: 's3', pathStyle: false, caBundle: 'PEM', secretName: 'backup-target' } },
    });
    expect(volumes).toContainEqual({
      name: 'source',
      persistentVolumeClaim: { claimName: 'golden', readOnly: true },
    });
    expect(volumes).toContainEqual({ name: 'source-secret', secret: { secretName: 'backup-target', optional: true } });
    expect(container?.volumeDevices).toHaveLength(1);
    expect(job.metadata.name).toBe(`backup-${imageRef.uid}`);
  });

  it('mounts an NFS export as its target', () => {
    const { spec, volumes, container } = build({ into: { type: 'nfs', server: 'nas', path: '/x', key: 'data/' } });
    expect(spec.backup?.into).toMatchObject({ type: 'folder', key: 'data/' });
    expect(volumes).toContainEqual({ name: 'source-nfs', nfs: { server: 'nas', path: '/x', readOnly: false } });
    expect(container?.volumeMounts).toContainEqual(expect.objectContaining({ name: 'source-nfs', readOnly: false }));
  });
});

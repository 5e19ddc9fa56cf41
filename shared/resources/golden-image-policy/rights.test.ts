// What admission writes into a policy beside who decided: what is left over of channels that are gone.
import { describe, expect, it } from 'vitest';
import { signPolicy } from './rights.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import type { GoldenImagePolicy, GoldenImagePolicySpec } from '#shared/api/bullion/golden-image-policy.ts';
import { channelFaults } from '#shared/resources/golden-image-policy/channels.ts';

const stable = { name: 'stable', dataSource: 'fedora' };
const after = { channel: 'candidate', approval: 'manual' as const };
const two = [
  { name: 'candidate', dataSource: 'fedora-candidate' },
  { ...stable, after },
];
const approval = { channel: 'stable', version: 'fedora-1' };
const earlier = { ...approval, by: 'jane', at: '2026-01-01T00:00:00Z' };

const aPolicy = (spec: Partial<GoldenImagePolicySpec>): GoldenImagePolicy => ({
  apiVersion: 'bullion.dev/v1alpha1',
  kind: 'GoldenImagePolicy',
  metadata: { namespace: 'golden', name: 'fedora' },
  spec: { dataImportCrons: { names: ['fedora'] }, channels: two, ...spec },
});

const request = { userInfo: { username: 'kim' }, operation: 'UPDATE' } as AdmissionRequest;
const now = Date.parse('2026-01-02T00:00:00Z');

describe('an approval', () => {
  it.each<[what: string, spec: Partial<GoldenImagePolicySpec>, kept: readonly object[], isRefused: boolean]>([
    ['stays with its channel', { approvals: [earlier] }, [earlier], false],
    ['goes when its channel waits for none any more', { channels: [stable], approvals: [earlier] }, [], false],
    ['goes with its channel', { channels: two.slice(0, 1), approvals: [earlier] }, [], false],
    [
      'is refused where somebody writes it for such a channel now',
      { channels: [stable], approvals: [{ ...approval, version: 'fedora-2' }] },
      [{ version: 'fedora-2', by: 'kim' }],
      true,
    ],
  ])('%s', (_, spec, kept, isRefused) => {
    const signed = signPolicy(request, aPolicy(spec), aPolicy({ approvals: [earlier] }), now);
    expect(signed.spec.approvals).toMatchObject(kept);
    expect(signed.spec.approvals).toHaveLength(kept.length);
    expect(channelFaults(signed)).toHaveLength(isRefused ? 1 : 0);
  });
});

// One row for each rule of TenantLimits themselves.
import type { Draft, Loose } from '#test/support/admission.ts';
import { type AdmissionRow, row } from '#test/support/rule-row.ts';

/** Selects nothing that other rows use. */
export const aLimit = (spec: Loose = {}, metadata: Loose = {}): Draft => ({
  apiVersion: 'bullion.dev/v1alpha1',
  kind: 'TenantLimit',
  metadata: { name: 'team-a', ...metadata },
  spec: { namespaceSelector: { matchLabels: { team: 'a' } }, ...spec },
});

const few = { quota: { images: 3 } };
const ofClasses = (...storageClasses: readonly Loose[]): Draft => aLimit({ quota: { storageClasses } });
const allowing = (...allow: readonly Loose[]): Draft => aLimit({ sources: { allow } });
const denying = (...deny: readonly Loose[]): Draft => aLimit({ sources: { deny } });

const keys = { configMap: 'release-keys' };
/** Of hosts that no other row uses. */
const signedBy = (place: Loose, signature: Loose): Draft => aLimit({ sources: { signed: [{ ...place, signature }] } });

export const limitRows: readonly AdmissionRow[] = [
  row('limit/limits-something', aLimit(few), aLimit(), /limits nothing: write quota/),
  row(
    'limit/sizes',
    aLimit({ quota: { storage: '500Gi' } }),
    aLimit({ quota: { storage: 'lots' } }),
    /spec\.quota\.storage.*"lots" is not a size/,
  ),
  row(
    'limit/sizes',
    ofClasses({ name: 'fast', storage: '1Ti' }),
    ofClasses({ name: 'fast', storage: '-1Gi' }),
    /spec\.quota\.storageClasses\[0\]\.storage/,
  ),
  row(
    'limit/one-quota-of-a-class',
    ofClasses({ name: 'fast', images: 1 }, { name: 'slow', images: 1 }),
    ofClasses({ name: 'fast', images: 1 }, { name: 'fast', volumes: 1 }),
    /storageClasses\[1\]\.name.*fast has an earlier entry/,
  ),
  row(
    'limit/one-place',
    allowing({ host: '*.example.com' }),
    allowing({ host: 'a.example', registry: 'b.example' }),
    /exactly one of host, registry and bucket/,
  ),
  row(
    'limit/one-place',
    denying({ addresses: '10.0.0.0/8' }),
    denying({ message: 'not here' }),
    /exactly one of host, registry, bucket and addresses/,
  ),
  row('limit/one-place', allowing({ bucket: 'a' }), allowing({ host: 'a.example', store: 'b' }), /store needs bucket/),
  row(
    'limit/places',
    allowing({ host: '10.0.0.5:8080' }),
    allowing({ host: 'https://images.example' }),
    /spec\.sources\.allow\[0\]\.host.*without scheme and path/,
  ),
  row(
    'limit/places',
    allowing({ registry: 'quay.io/containerdisks' }),
    allowing({ registry: 'docker://quay.io/a:1' }),
    /spec\.sources\.allow\[0\]\.registry.*without scheme and tag/,
  ),
  row(
    'limit/places',
    denying({ addresses: 'fd00::/8', message: 'the network of the nodes' }),
    denying({ addresses: '10.0.0.0/99' }),
    /spec\.sources\.deny\[0\]\.addresses.*not an address range/,
  ),
  row('limit/places', allowing({ bucket: 'images' }), allowing({ bucket: 'a/b' }), /not the name of a bucket/),
  row(
    'limit/selector',
    aLimit({ ...few, namespaceSelector: { matchLabels: { team: 'b' } } }),
    aLimit({ ...few, namespaceSelector: { matchLabels: { team: 'b c' } } }),
    /spec\.namespaceSelector\.matchLabels\[team\].*"b c" cannot be the value of a label/,
  ),
  row(
    'limit/selector',
    aLimit({ ...few, namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: ['b', ''] }] } }),
    aLimit({ ...few, namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['-b'] }] } }),
    /matchExpressions\[0\]\.values.*"-b" cannot be/,
  ),
  row(
    'limit/fitting-signature',
    signedBy({ registry: 'quay.io' }, { cosign: { keys } }),
    signedBy({ registry: 'quay.io' }, { gpg: { keys } }),
    /spec\.sources\.signed\[0\]\.signature.*signed by cosign/,
  ),
  row(
    'limit/fitting-signature',
    signedBy({ host: 'images.example' }, { minisign: { keys } }),
    signedBy({ host: 'images.example' }, { cosign: { keys } }),
    /spec\.sources\.signed\[0\]\.signature.*write gpg or minisign/,
  ),
];

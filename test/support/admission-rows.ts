// One row for each rule of RULES.md that needs only an object and its old version: an accepted and a rejected request, and the message.
import { aHarvesterImage as image } from '#test/support/admission.ts';
import { cdiRows } from '#test/support/cdi-rows.ts';
import { hyperCloudRows } from '#test/support/hypercloud-rows.ts';
import { limitRows } from '#test/support/limit-rows.ts';
import { policyRows } from '#test/support/policy-rows.ts';
import { type AdmissionRow, described, fixed, row, update } from '#test/support/rule-row.ts';

const annotated = (name: string) => ({ annotations: { 'harvesterhci.io/storageClassName': name } });
const classed = image({ targetStorageClassName: 'a' }, annotated('a'));
const clone = { sourceType: 'clone', url: undefined };

const credentials = {
  annotations: { 'bullion.dev/secret-ref': 'login', 'bullion.dev/cert-config-map': 'authorities' },
};
const uuid = '11111111-2222-3333-4444-555555555555';
const identity = { annotations: { 'bullion.dev/workload-identity': `azure:${uuid}/${uuid}` } };

const harvesterRows: readonly AdmissionRow[] = [
  row(
    'harvester/display-name-given',
    image({ displayName: 'Debian 12 (bookworm)' }),
    image({ displayName: '' }),
    /spec\.displayName/,
  ),
  row(
    'harvester/one-storage-class',
    classed,
    image({ targetStorageClassName: 'a' }, annotated('b')),
    /targetStorageClassName.*differs/,
  ),
  row('harvester/url-given', image(), image({ url: undefined }), /spec\.url.*is required/),
  row('harvester/url-valid', image(), image({ url: 'nowhere' }), /spec\.url.*is not a valid URL/),
  row('any/address', image(), image({ url: 'https://169.254.169.254/disk' }), /spec\.url.*a metadata service/),
  row(
    'images/undelete-for',
    image({}, { annotations: { 'bullion.dev/undelete-for': '7d' } }),
    image({}, { annotations: { 'bullion.dev/undelete-for': 'a week' } }),
    /metadata\.annotations\[bullion\.dev\/undelete-for\].*no time such as 7d/,
  ),
  row(
    'images/deprecation',
    image({}, { annotations: { 'bullion.dev/deprecation': '{"state":"Deprecated","message":"too old"}' } }),
    image({}, { annotations: { 'bullion.dev/deprecation': 'too old' } }),
    /metadata\.annotations\[bullion\.dev\/deprecation\].*bullion deprecate writes it/,
  ),
  row(
    'harvester/source-access',
    image({}, credentials),
    image({}, { annotations: { 'bullion.dev/secret-ref': 'Not A Name' } }),
    /metadata\.annotations\[bullion\.dev\/secret-ref\].*is not a valid name/,
  ),
  row(
    'harvester/source-access',
    image({}, credentials),
    image({ sourceType: 'upload', url: undefined }, credentials),
    /secret-ref.*is not used by a file that a client sends/,
  ),
  update(
    'images/fixed-access',
    image({}, credentials),
    described(image({}, credentials)),
    image({}, { annotations: { 'bullion.dev/secret-ref': 'other' } }),
    /secret-ref.*cannot be changed: create a new object/,
  ),
  row(
    'images/backend-source',
    image({}, identity),
    image({ backend: 'cdi' }, identity),
    /backend "cdi" fetches without workloadIdentity: take backend csi/,
  ),
  row('images/backend-served', image(), image({ backend: 'tape' }), /spec\.backend/),
  row(
    'images/backend-source',
    image(),
    image({ sourceType: 'restore', url: 's3://backups@region/?backingImage=vmi-1' }),
    /spec\.sourceType.*cannot take a restore source/,
  ),
  row('harvester/checksum', image(), image({ checksum: 'crc32:00' }), /spec\.checksum/),
  row('harvester/no-url', image(), image({ sourceType: 'upload' }), /spec\.url.*must be empty/),
  row('harvester/source-image-given', image(), image(clone), /sourceImageName.*is required/),
  row(
    'harvester/claim-given',
    image(),
    image({ sourceType: 'export-from-volume', url: undefined }),
    /spec\.pvcName.*is required/,
  ),
  update(
    'harvester/fixed-class-annotation',
    classed,
    described(classed),
    image({ targetStorageClassName: 'a' }, annotated('b')),
    /must stay a/,
  ),
  fixed('harvester/fixed-class', classed, { targetStorageClassName: 'b' }, /targetStorageClassName/),
  fixed(
    'harvester/class-matches-annotation',
    classed,
    { targetStorageClassName: 'b' },
    /must stay a|targetStorageClassName cannot be changed/,
  ),
  fixed('harvester/fixed-source-type', image(), { sourceType: 'upload' }, /sourceType cannot be changed/),
  fixed('harvester/fixed-claim', image(), { pvcName: 'x', pvcNamespace: 'default' }, /pvcName cannot be changed/),
  fixed('harvester/fixed-url', image(), { url: 'https://images.example/other' }, /url cannot be changed/),
  fixed(
    'harvester/fixed-security-parameters',
    image(),
    { securityParameters: { sourceImageName: 'x', sourceImageNamespace: 'default' } },
    /securityParameters cannot be changed/,
  ),
  fixed('harvester/fixed-display-name', image(), { displayName: 'other' }, /displayName cannot be changed/),
];

export const admissionRows: readonly AdmissionRow[] = [
  ...harvesterRows,
  ...hyperCloudRows,
  ...cdiRows,
  ...policyRows,
  ...limitRows,
];

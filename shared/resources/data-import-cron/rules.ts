// What admission says of a DataImportCron, in the words its plan would use. Called by admission.ts.
import { isDeepStrictEqual } from 'node:util';
import type { DataImportCron } from '#shared/api/cdi/data-import-cron.ts';
import { annotations } from '#shared/api/names.ts';
import { namesIn } from '#shared/golden/copies.ts';
import type { CronResource } from '#shared/resources/data-import-cron/cron.ts';
import { type RequestRule, faultIf, faultsOf, type SpecRule } from '#shared/resources/rule.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { dataVolumeRules } from '#shared/resources/data-volume/rules.ts';
import type { Fault } from '#shared/runtime/errors.ts';

type Rule = RequestRule<DataImportCron, CronResource>;

/** The CRD compares the fields it knows; a template holds others as well. */
const isSame: Rule['check'] = ({ object, before }) =>
  faultIf(
    before !== undefined && !isDeepStrictEqual(object.spec, before.spec),
    'spec',
    'Cannot update DataImportCron Spec: delete it and create it again',
  );

/** What a template without a source it can follow should be, nobody knows. */
const isGoodTemplate: Rule['check'] = ({ object, resource: { source } }) =>
  source === undefined ? [] : faultsOf(cronTemplateRules, object);

const isName = (text: string): boolean => /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/.test(text);

/** A value that means nothing would do nothing, and nobody would notice. */
const saysWhatToCopy: Rule['check'] = ({ object }) => {
  const { [annotations.prewarm]: prewarm, [annotations.copyOnFirstUse]: first } = object.metadata.annotations ?? {};
  return [
    ...faultIf(
      !namesIn(prewarm).every(isName),
      `metadata.annotations[${annotations.prewarm}]`,
      'is no list of storage classes: write their names with commas between them',
    ),
    ...faultIf(
      first !== undefined && first !== 'true' && first !== 'false',
      `metadata.annotations[${annotations.copyOnFirstUse}]`,
      'must be "true" or "false"',
    ),
  ];
};

const copies = { id: 'copies', reason: 'Invalid', check: saysWhatToCopy } as const;

export const dataImportCronRules: readonly Rule[] = [
  { ...copies, on: 'CREATE' },
  { ...copies, on: 'UPDATE' },
  { id: 'spec', on: 'CREATE', reason: 'Invalid', check: ({ resource }) => resource.faults },
  { id: 'template', on: 'CREATE', reason: 'Invalid', check: isGoodTemplate },
  { id: 'fixed-spec', on: 'UPDATE', reason: 'Invalid', check: isSame },
];

// What the template of a DataImportCron must be: the DataVolume that each version is made from.

type Check = SpecRule<DataImportCron>['check'];

const mostCharacters = 63;

/** It is a label of all that the cron makes. */
const nameFits: Check = ({ metadata }) =>
  faultIf(metadata.name.length > mostCharacters, 'metadata.name', `must have at most ${mostCharacters} characters`);

const decidedHere = ['sourceRef', 'contentType', 'checkpoints', 'finalCheckpoint'] as const;

const isSet = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);

const unsettable: Check = ({ spec: { template } }) =>
  decidedHere.flatMap((field) =>
    faultIf(
      isSet((template?.spec as Readonly<Record<string, unknown>> | undefined)?.[field]),
      `spec.template.spec.${field}`,
      'cannot be set in the template of a cron: leave it out',
    ),
  );

/** The cron's own rules are about the source; these about the rest. */
const isOfTheRest = ({ field }: Fault): boolean => !field.startsWith('spec.source') && field.startsWith('spec.');

/** Its source is polled without a pod, so there is no service account whose identity could be used. */
const noIdentity: Check = ({ spec: { template } }) =>
  faultIf(
    isSet(template?.metadata?.annotations?.[annotations.workloadIdentity]),
    `spec.template.metadata.annotations[${annotations.workloadIdentity}]`,
    'cannot be used by a cron, whose source is polled without a pod: write a Secret in secretRef',
  );

const asDataVolume: Check = ({ metadata, spec: { template } }) => {
  // Where it says nothing of its volume, the cron leaves that to the class.
  const form = template?.spec['pvc'] === undefined && template?.spec['storage'] === undefined ? { storage: {} } : {};
  const { success, data, error } = dataVolumeKind.spec.safeParse({ ...template?.spec, ...form });
  if (template === undefined) return [];
  if (!success)
    return error.issues
      .filter(({ path: [first = 'source'] }) => ![...decidedHere, 'source'].includes(String(first)))
      .map(({ path, message }) => ({ field: ['spec.template.spec', ...path].join('.'), message }));
  const volume = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', metadata, spec: data } as unknown;
  return faultsOf(dataVolumeRules, volume as DataVolume)
    .filter(isOfTheRest)
    .filter(({ field }) => !decidedHere.some((name) => field === `spec.${name}`))
    .map(({ field, message }) => ({ field: field.replace('spec.', 'spec.template.spec.'), message }));
};

export const cronTemplateRules: readonly SpecRule<DataImportCron>[] = [
  { id: 'name-length', check: nameFits },
  { id: 'decided-by-cron', check: unsettable },
  { id: 'template-identity', check: noIdentity },
  { id: 'template-volume', check: asDataVolume },
];

// Rules of every image kind, in addition to the tables of the kinds.
import type { KubeObject } from '#shared/api/object.ts';
import { type BackendCapabilities, isInstalled } from '#shared/backends/backend.ts';
import { type BackendRegistry, registrationOf } from '#shared/backends/registry.ts';
import type { Restored } from '#shared/populate/restore-source.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import type { RequestRule } from '#shared/resources/rule.ts';
import type { Image } from '#shared/backends/image.ts';

/** Fields of the kind that these rules are about. */
export interface RuleFields {
  readonly backend: string;
  readonly source: string;
}

/** Why an image cannot be filled from such a source by its backend; `undefined` if it can. */
export const unfitSource = ({ backend, source, ref }: Image, capabilities: BackendCapabilities): string | undefined => {
  const { sources, encrypts, copiesNearby } = capabilities;
  if (source === undefined) return undefined;
  if (!sources.includes(source.type))
    return `backend "${backend}" cannot take a ${source.type} source; it takes ${sources.join(', ')}`;
  if (source.type === 'clone' && source.operation !== undefined && encrypts !== true)
    return `backend "${backend}" makes plain copies and cannot ${source.operation}: take one whose storage encrypts, with a class that says so`;
  const isElsewhere = 'namespace' in source && source.namespace !== ref.namespace;
  return copiesNearby === true && isElsewhere
    ? `backend "${backend}" copies within a namespace: create the image in namespace ${source.namespace}, or take a backend that copies across namespaces`
    : undefined;
};

/** Faults of the annotation that names the backup of an image. */
export const faultsOfRestored = (restored: Restored): readonly Fault[] =>
  restored.is === 'unreadable'
    ? [{ field: restored.field, message: 'is invalid; it is set when a backup is restored' }]
    : [];

export const imageRules = (backends: BackendRegistry, fields: RuleFields): readonly RequestRule<KubeObject>[] => {
  const isServed: RequestRule<KubeObject>['check'] = ({ resource: image }) => {
    const registration = registrationOf(backends, image.backend);
    if (registration.served) return [];
    return [{ field: fields.backend, message: `"${image.backend}" is not available: ${registration.because}` }];
  };

  const isThere: RequestRule<KubeObject>['check'] = async ({ resource: image, kube }) => {
    const registration = registrationOf(backends, image.backend);
    const needs = registration.served ? registration.backend.needs : undefined;
    if (needs === undefined || (await isInstalled(kube, needs))) return [];
    return [{ field: fields.backend, message: `"${image.backend}" cannot be used: ${needs.because}` }];
  };

  const canFill: RequestRule<KubeObject>['check'] = ({ resource: image }) => {
    const registration = registrationOf(backends, image.backend);
    const message = registration.served ? unfitSource(image, registration.backend.capabilities) : undefined;
    return message === undefined ? [] : [{ field: fields.source, message }];
  };

  const canCreate: RequestRule<KubeObject>['check'] = ({ resource: image, kube }) => {
    const registration = registrationOf(backends, image.backend);
    return registration.served ? registration.backend.validator.create(image, kube) : [];
  };

  const canUpdate: RequestRule<KubeObject>['check'] = ({ resource: image, resourceBefore: imageBefore }) => {
    const registration = registrationOf(backends, image.backend);
    return registration.served && imageBefore !== undefined
      ? registration.backend.validator.update(imageBefore, image)
      : [];
  };

  return [
    { id: 'spec', on: 'CREATE', reason: 'Invalid', check: ({ resource: image }) => image.faults },
    { id: 'backend-served', on: 'CREATE', reason: 'Invalid', check: isServed },
    { id: 'backend-installed', on: 'CREATE', reason: 'Invalid', check: isThere },
    { id: 'backend-source', on: 'CREATE', reason: 'Invalid', check: canFill },
    { id: 'backend-create', on: 'CREATE', reason: 'Invalid', check: canCreate },
    { id: 'backend-update', on: 'UPDATE', reason: 'Invalid', check: canUpdate },
  ];
};

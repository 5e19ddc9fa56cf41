// Rules of every image kind, in addition to the tables of the kinds.
import { storageClasses } from '#shared/api/foreign/core.ts';
import { harvesterAnnotations } from '#shared/api/harvester/image.ts';
import { type KubeObject, type Owner, ownerOf } from '#shared/api/object.ts';
import { type BackendCapabilities, type Image, isInstalled } from '#shared/backends/backend.ts';
import { type BackendRegistry, registrationOf } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { credentialsOf } from '#shared/populate/sources/servers.ts';
import type { Restored } from '#shared/populate/restore-source.ts';
import type { AskedSource } from './access-rule.ts';
import { annotations } from '#shared/api/names.ts';
import { deprecationOfImage } from '#shared/golden/rollout/deprecation.ts';
import { changedAccess } from '#shared/resources/source-access.ts';
import { type RequestRule, faultIf } from './rule.ts';
import { mostGrace } from '#shared/resources/deleted-images/record.ts';
import { parseSpan } from '#shared/runtime/age.ts';
import type { Fault } from '#shared/runtime/errors.ts';

// A volume in the storage class of an image is a copy of that image: users who name the class, in any kind of object, must be allowed to read
// the image. Checked at admission, because claims are later created by functions that may read every image.

interface NamedClass {
  readonly field: string;
  readonly name: string;
}

const isClassField = (key: string): boolean => /storageClassName$/i.test(key);

/** At any depth: the fields have the same name in all kinds. */
const classesIn = (value: unknown, path: string): readonly NamedClass[] => {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]: [string, unknown]) => {
    const field = `${path}.${key}`;
    if (typeof inner !== 'string') return classesIn(inner, field);
    return isClassField(key) && inner !== '' ? [{ field, name: inner }] : [];
  });
};

const namedClasses = (object: KubeObject): readonly NamedClass[] => {
  const key = harvesterAnnotations.storageClassName;
  const name = object.metadata.annotations?.[key] ?? '';
  const written = name === '' ? [] : [{ field: `metadata.annotations[${key}]`, name }];
  return [...classesIn((object as { readonly spec?: unknown }).spec, 'spec'), ...written];
};

export const imageOfClass = async (kube: KubeClient, name: string): Promise<Owner | undefined> => {
  const found = name === '' ? undefined : await kube.get(storageClasses, { name });
  return found && ownerOf(found);
};

/** Its mark is not one that is read (`shared/golden/rollout/deprecation.ts`): people would believe that it does something. */
const deprecationFaults = (image: KubeObject): readonly Fault[] => {
  const isMarked = image.metadata.annotations?.[annotations.deprecation] !== undefined;
  return faultIf(
    isMarked && deprecationOfImage(image) === undefined,
    `metadata.annotations[${annotations.deprecation}]`,
    'is not JSON with state (Deprecated or Obsolete) and message: bullion deprecate writes it',
  );
};

const undeleteFaults = ({ metadata }: KubeObject): readonly Fault[] => {
  const written = metadata.annotations?.[annotations.undeleteFor];
  const grace = parseSpan(written ?? '0s');
  return faultIf(
    grace === undefined || grace > mostGrace,
    `metadata.annotations[${annotations.undeleteFor}]`,
    'is no time such as 7d or 12h, up to 3650d: for how long the image can be brought back after its deletion',
  );
};

/** Images of the classes that an object names; one look-up per class. */
export const imagesOfClasses = async (object: KubeObject, kube: KubeClient): Promise<readonly AskedSource[]> => {
  const found = await Promise.all(
    namedClasses(object).map(async ({ field, name }): Promise<readonly AskedSource[]> => {
      const image = await imageOfClass(kube, name);
      if (image === undefined) return [];
      return [{ use: 'use-image', namespace: image.namespace, name: image.name, field, shown: 'of this class' }];
    }),
  );
  return found.flat();
};

/** Fields of the kind that these rules are about. */
interface RuleFields {
  readonly backend: string;
  readonly source: string;
}

/** Why an image cannot be filled from such a source by its backend; `undefined` if it can. */
export const unfitSource = ({ backend, source, ref }: Image, capabilities: BackendCapabilities): string | undefined => {
  const { sources, encrypts, copiesNearby, passes = [] } = capabilities;
  if (source === undefined) return undefined;
  if (!sources.includes(source.type))
    return `backend "${backend}" cannot take a ${source.type} source; it takes ${sources.join(', ')}`;
  if (source.type === 'clone' && source.operation !== undefined && encrypts !== true)
    return `backend "${backend}" makes plain copies and cannot ${source.operation}: take one whose storage encrypts, with a class that says so`;
  const unpassed = credentialsOf(source).find((name) => !passes.includes(name));
  if (unpassed !== undefined)
    return `backend "${backend}" fetches without ${unpassed}: take ${passes.length === 0 ? 'backend cdi or csi' : 'backend csi'}`;
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

  const hasGoodGrace: RequestRule<KubeObject>['check'] = ({ object }) => undeleteFaults(object);

  const hasGoodMark: RequestRule<KubeObject>['check'] = ({ object }) => deprecationFaults(object);

  return [
    { id: 'deprecation', on: 'CREATE', reason: 'Invalid', check: hasGoodMark },
    { id: 'deprecation', on: 'UPDATE', reason: 'Invalid', check: hasGoodMark },
    { id: 'undelete-for', on: 'CREATE', reason: 'Invalid', check: hasGoodGrace },
    { id: 'undelete-for', on: 'UPDATE', reason: 'Invalid', check: hasGoodGrace },
    { id: 'spec', on: 'CREATE', reason: 'Invalid', check: ({ resource: image }) => image.faults },
    { id: 'backend-served', on: 'CREATE', reason: 'Invalid', check: isServed },
    { id: 'backend-installed', on: 'CREATE', reason: 'Invalid', check: isThere },
    { id: 'backend-source', on: 'CREATE', reason: 'Invalid', check: canFill },
    { id: 'backend-create', on: 'CREATE', reason: 'Invalid', check: canCreate },
    { id: 'fixed-access', on: 'UPDATE', reason: 'Invalid', check: changedAccess },
    { id: 'backend-update', on: 'UPDATE', reason: 'Invalid', check: canUpdate },
  ];
};

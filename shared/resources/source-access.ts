// Credentials and certificate authorities that an image names for its source: in fields where its kind has them, else in annotations. All are
// objects of its own namespace, mounted by name, or the service account of its pods: there is nothing to ask its author for.
import { ObjectName } from '#shared/api/kind.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { identityForms, parseIdentity } from '#shared/clients/cloud/identity.ts';
import { type Source, accessOf } from '#shared/populate/source.ts';
import type { Credential } from '#shared/populate/sources/row.ts';
import type { SourceAccess } from '#shared/populate/sources/servers.ts';
import { type RequestRule, type SpecRule, faultIf } from '#shared/resources/rule.ts';
import type { Fault } from '#shared/runtime/errors.ts';

/** As written; an empty text counts as missing. */
export type WrittenAccess = { readonly [C in Credential]?: string | undefined };

export const credentialAnnotations: Readonly<Record<Credential, string>> = {
  secretRef: annotations.secretRef,
  certConfigMap: annotations.certConfigMap,
  workloadIdentity: annotations.workloadIdentity,
};
const credentials = ['secretRef', 'certConfigMap', 'workloadIdentity'] as const satisfies readonly Credential[];

export const annotatedAccess = ({ metadata: { annotations: found = {} } }: KubeObject): WrittenAccess =>
  Object.fromEntries(credentials.map((name) => [name, found[credentialAnnotations[name]]]));

export const annotationField = (name: Credential): string => `metadata.annotations[${credentialAnnotations[name]}]`;

const isSet = (text: string | undefined): text is string => text !== undefined && text !== '';

/** Without what is not valid: the rules report that. */
export const readAccess = ({ secretRef, certConfigMap, workloadIdentity = '' }: WrittenAccess): SourceAccess => {
  const identity = parseIdentity(workloadIdentity);
  return {
    ...(isSet(secretRef) ? { secretName: secretRef } : {}),
    ...(isSet(certConfigMap) ? { bundleName: certConfigMap } : {}),
    ...(identity === undefined ? {} : { identity }),
  };
};

const nameFault = (text: string): string | undefined =>
  ObjectName.safeParse(text).success ? undefined : 'is not a valid name of an object in the namespace of this one';

const textFault = (name: Credential, text: string): string | undefined => {
  if (name !== 'workloadIdentity') return nameFault(text);
  return parseIdentity(text) === undefined ? `has neither of its forms: ${identityForms}` : undefined;
};

/** `source`: `undefined` if it is refused for something else. */
export const accessFaults = (
  source: Pick<Source, 'type'> | undefined,
  written: WrittenAccess,
  fieldOf: (name: Credential) => string,
): readonly Fault[] => {
  const taken = source && accessOf(source);
  const single = credentials.flatMap((name) => {
    const text = written[name];
    if (!isSet(text)) return [];
    const useless = `is not used by ${taken?.name ?? ''}: leave it out`;
    const message = taken?.takes.includes(name) === false ? useless : textFault(name, text);
    return faultIf(message !== undefined, fieldOf(name), message ?? '');
  });
  const both = isSet(written.secretRef) && isSet(written.workloadIdentity);
  const message = `cannot stand beside ${fieldOf('secretRef')}: write one of them`;
  return [...single, ...faultIf(both, fieldOf('workloadIdentity'), message)];
};

/** For kinds whose access is written in annotations. */
export const annotatedAccessRule = <T extends KubeObject>(
  sourceOf: (object: T) => Source | undefined,
): SpecRule<T> => ({
  id: 'source-access',
  check: (object) => accessFaults(sourceOf(object), annotatedAccess(object), annotationField),
});

/** The source is fixed, and what it is read with belongs to it: bytes that were fetched are not asked for again. */
export const changedAccess: RequestRule<KubeObject, unknown>['check'] = ({ object, before }) => {
  if (before === undefined) return [];
  const [now, then] = [annotatedAccess(object), annotatedAccess(before)];
  return credentials.flatMap((name) =>
    faultIf((now[name] ?? '') !== (then[name] ?? ''), annotationField(name), 'cannot be changed: create a new object'),
  );
};

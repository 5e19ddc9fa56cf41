// Marks record the owner, the content and the permitted sources of an object, and are trusted: only Bullion may write them. They are removed
// from objects that others create, since clients copy claims with all annotations, and rejected in updates by others.
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { harvesterAnnotations } from '#shared/api/harvester/image.ts';
import { annotations, labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { imageHeldIn, makerOf } from '#shared/resources/protected/golden.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

const maps = ['labels', 'annotations'] as const;

/** Marks that only Bullion may write on the kinds that store images. */
export const ownMarks = {
  labels: [
    labels.ownerUid,
    labels.ownerKind,
    labels.role,
    labels.source,
    labels.content,
    labels.askedContent,
    labels.copyOf,
    labels.exporting,
  ],
  annotations: [
    annotations.ownerName,
    annotations.ownerNamespace,
    annotations.populated,
    annotations.granted,
    annotations.content,
    annotations.exporting,
    annotations.clone,
    annotations.handover,
    annotations.inspected,
    annotations.snapshotClass,
    annotations.deprecation,
    annotations.deleted,
    annotations.goldenCopy,
    annotations.attempt,
    harvesterAnnotations.goldenImage,
  ],
} as const;

const isOurs = (key: string): boolean =>
  key.startsWith('bullion.dev/') || [...ownMarks.labels, ...ownMarks.annotations].some((mark) => mark === key);

/** Labels or annotations of a user's template for our objects: admission does not check our own writes. */
export const withoutOwnMarks = (map: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(map).filter(([key]) => !isOurs(key)));

/** Marks that must stay on an object that stores an image; users set some of them on other objects. */
export const keptMarks = {
  labels: ownMarks.labels,
  annotations: [...ownMarks.annotations, harvesterAnnotations.imageId],
} as const;

interface Mark {
  readonly map: (typeof maps)[number];
  readonly key: string;
}

const valueOf = (object: KubeObject | undefined, { map, key }: Mark): string | undefined =>
  object?.metadata[map]?.[key];

const marksIn = (marks: Readonly<Record<Mark['map'], readonly string[]>>): readonly Mark[] =>
  maps.flatMap((map) => marks[map].map((key) => ({ map, key })));

/** The grants of a data volume are set at its creation, by a separate rule (`access-rule.ts`). */
const isGrant = ({ kind }: KubeObject, { key }: Mark): boolean =>
  kind === dataVolumeKind.type.kind && key === annotations.granted;

/** Marks that are new in this request and differ from those of the claim's data volume. */
const foreignMarks = async (
  object: KubeObject,
  before: KubeObject | undefined,
  kube: KubeClient,
): Promise<readonly Mark[]> => {
  const found = marksIn(ownMarks).filter((mark) => {
    const value = valueOf(object, mark);
    return value !== undefined && value !== valueOf(before, mark) && !isGrant(object, mark);
  });
  if (found.length === 0) return [];
  const maker = await makerOf(object, kube);
  return found.filter((mark) => valueOf(object, mark) !== valueOf(maker, mark));
};

/** The object without marks that others may not write. */
export const withoutForeignMarks = async (object: KubeObject, kube: KubeClient): Promise<KubeObject> => {
  const foreign = await foreignMarks(object, undefined, kube);
  const without = (map: Mark['map']) => {
    const keys = foreign.filter((mark) => mark.map === map).map(({ key }) => key);
    if (keys.length === 0) return {};
    return {
      [map]: Object.fromEntries(Object.entries(object.metadata[map] ?? {}).filter(([key]) => !keys.includes(key))),
    };
  };
  if (foreign.length === 0) return object;
  return { ...object, metadata: { ...object.metadata, ...without('labels'), ...without('annotations') } };
};

const refuse = (marks: readonly Mark[], message: string): AdmissionAnswer =>
  refused(
    'Forbidden',
    marks.map(({ map, key }) => ({ field: `metadata.${map}[${key}]`, message })),
  );

/** On unprotected objects, marks may be removed but not added. */
export const keepMarks = async (
  { object, oldObject }: AdmissionRequest,
  kube: KubeClient,
): Promise<AdmissionAnswer> => {
  if (object === undefined || object.metadata.deletionTimestamp !== undefined) return allowed;
  const changed = marksIn(keptMarks).filter((mark) => valueOf(object, mark) !== valueOf(oldObject, mark));
  const image = oldObject === undefined || changed.length === 0 ? undefined : await imageHeldIn(oldObject, kube);
  if (image !== undefined)
    return refuse(changed, `marks the object that stores the image ${image.namespace}/${image.name}: do not change it`);
  const foreign = await foreignMarks(object, oldObject, kube);
  return foreign.length === 0 ? allowed : refuse(foreign, 'may be set only by Bullion: leave it out');
};

// Marks say whose an object is, what it was filled with and what it may be made from, and are believed: nobody but Bullion writes them. They are taken
// off what others make, since clients copy claims with all that is written on them, and refused where others add them later.
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { harvesterAnnotations } from '#shared/api/harvester/image.ts';
import { annotations, labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { imageHeldIn, makerOf } from '#shared/resources/protected/golden.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

const maps = ['labels', 'annotations'] as const;

/** What only Bullion writes on the kinds that images are kept in. */
export const ownMarks = {
  labels: [
    labels.ownerUid,
    labels.ownerKind,
    labels.role,
    labels.source,
    labels.content,
    labels.askedContent,
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
    annotations.inspected,
    annotations.snapshotClass,
    annotations.attempt,
    harvesterAnnotations.goldenImage,
  ],
} as const;

const isOurs = (key: string): boolean =>
  key.startsWith('bullion.dev/') || [...ownMarks.labels, ...ownMarks.annotations].some((mark) => mark === key);

/** Labels or annotations of a template that people wrote and we make objects from: what we write passes admission unasked. */
export const withoutOwnMarks = (map: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(map).filter(([key]) => !isOurs(key)));

/** What stays on an object that holds an image: people write some of it on others. */
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

/** The grants of a data volume are found out at its creation, by a rule of their own (`access-rule.ts`). */
const isGrant = ({ kind }: KubeObject, { key }: Mark): boolean =>
  kind === dataVolumeKind.type.kind && key === annotations.granted;

/** Marks that came with this request and are not those of the data volume that a claim is made for. */
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

/** The object as others may make it. */
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

/** Of what nobody holds, marks may go and must not come. */
export const keepMarks = async (
  { object, oldObject }: AdmissionRequest,
  kube: KubeClient,
): Promise<AdmissionAnswer> => {
  if (object === undefined || object.metadata.deletionTimestamp !== undefined) return allowed;
  const changed = marksIn(keptMarks).filter((mark) => valueOf(object, mark) !== valueOf(oldObject, mark));
  const image = oldObject === undefined || changed.length === 0 ? undefined : await imageHeldIn(oldObject, kube);
  if (image !== undefined)
    return refuse(changed, `marks what holds the image ${image.namespace}/${image.name}: leave it`);
  const foreign = await foreignMarks(object, oldObject, kube);
  return foreign.length === 0 ? allowed : refuse(foreign, 'is written by Bullion alone: leave it out');
};

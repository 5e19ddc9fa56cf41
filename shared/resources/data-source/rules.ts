// What admission asks of a DataSource: that what it offers is written well, and by who may give it away.
import { isDeepStrictEqual } from 'node:util';
import { offerOf } from '#shared/access/offers.ts';
import { anyName, grantFor, isAllowed } from '#shared/access/permissions.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { annotations, ownAccountPrefix } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { DataSourceResource } from '#shared/resources/data-source/resource.ts';
import { type RequestRule, faultIf } from '#shared/resources/rule.ts';
import { type AdmissionAnswer, refused } from '#shared/runtime/admission-function.ts';

type Rule = RequestRule<DataSource, DataSourceResource>;

const fieldOf = (key: string): string => `metadata.annotations[${key}]`;
const textOf = (object: KubeObject | undefined, key: string): string | undefined => object?.metadata.annotations?.[key];

const hasGoodOffer: Rule['check'] = ({ object }) =>
  faultIf(
    textOf(object, annotations.offeredTo) !== undefined && offerOf(object) === undefined,
    fieldOf(annotations.offeredTo),
    'is not a selector of namespaces: write * for all, or labels such as team=blue,env in (dev, test)',
  );

const offer = { id: 'offer', reason: 'Invalid', check: hasGoodOffer } as const;

export const dataSourceRules: readonly Rule[] = [
  { ...offer, on: 'CREATE' },
  { ...offer, on: 'UPDATE' },
];

const isSameSource = (before: KubeObject | undefined, { spec }: DataSource): boolean =>
  isDeepStrictEqual((before as DataSource | undefined)?.spec, spec);

/** Bullion makes a DataSource in each namespace that is selected, whose users trust its name: it must be one that the author might make there. */
const makesSources = {
  verb: 'create',
  group: dataSourceKind.type.group,
  resource: dataSourceKind.type.plural,
} as const;

/** Who may write a DataSource may not necessarily clone what it stands for; only who may can give it to others. To withdraw an offer takes no right. */
export const reviewOffer = async (
  { userInfo, oldObject }: AdmissionRequest,
  object: DataSource,
  { kube }: { readonly kube: KubeClient },
): Promise<AdmissionAnswer | undefined> => {
  if (userInfo.username.startsWith(ownAccountPrefix)) return undefined;
  const mark = textOf(object, annotations.offeredBy);
  if (mark !== undefined && mark !== textOf(oldObject, annotations.offeredBy))
    return refused('Forbidden', [
      { field: fieldOf(annotations.offeredBy), message: 'may be set only by Bullion: leave it out' },
    ]);
  const offer = textOf(object, annotations.offeredTo);
  const isAsBefore = offer === textOf(oldObject, annotations.offeredTo) && isSameSource(oldObject, object);
  if (offer === undefined || isAsBefore) return undefined;
  const { namespace = '' } = object.metadata;
  const refuse = (what: string, requires: string): AdmissionAnswer => {
    const message = `user ${userInfo.username} is not allowed to offer what is in namespace ${namespace}${what}: this requires permission to create ${requires}`;
    return refused('Forbidden', [{ field: fieldOf(annotations.offeredTo), message }]);
  };
  if ((await grantFor(kube, userInfo, { use: 'clone-claim', namespace, name: anyName })) === undefined)
    return refuse('', 'datavolumes/source of cdi.kubevirt.io there');
  if (await isAllowed(kube, userInfo, makesSources)) return undefined;
  return refuse(' to other namespaces', 'datasources of cdi.kubevirt.io in all namespaces');
};

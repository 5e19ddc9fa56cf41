// Which servers a transfer Job may reach, where limits of a namespace say so: also those that a source leads to by the administrator's own settings.
import { extendReach } from '#shared/clients/http/reach.ts';
import { parseReference, serverOf } from '#shared/clients/registry/reference.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { type JobSource, toTransferSource } from '#shared/populate/source.ts';
import type { TransferSource, TransferSpec } from '#shared/transfer/spec.ts';

interface Fetched {
  readonly source: JobSource;
  readonly owner: ObjectRef;
}

/** Mirrors are the administrator's own places, and a registry chooses where under its name it answers. */
export const reachIn = (request: Fetched, settings: PopulateSettings): Pick<TransferSpec, 'reach'> => {
  const source = toTransferSource(request.source, { owner: request.owner, settings });
  const reach = extendReach(settings.reach, [...placesBeside(source), ...ownStore(request, settings)]);
  return reach === undefined ? {} : { reach };
};

const placesBeside = (source: TransferSource): readonly string[] => {
  if (source.type === 'registry') {
    const { host } = parseReference(source.url);
    return [serverOf(host), ...(source.places ?? []).map((place) => serverOf(place.host))];
  }
  const { mirrors = [] } = source.type === 'http' || source.type === 's3' ? source : {};
  return mirrors.flatMap(hostsIn);
};

const hostsIn = (url: string): readonly string[] => {
  const parsed = URL.parse(url);
  return parsed === null ? [] : [parsed.host];
};

/** Which bucket of the installation's store may be read was decided by its name: users do not know where the store is. */
const ownStore = ({ source }: Pick<Fetched, 'source'>, { objectStore }: PopulateSettings): readonly string[] => {
  if (source.type !== 'object') return [];
  return hostsIn(objectStore?.endpoint ?? '').flatMap((host) => [host, `${source.bucket}.${host}`]);
};

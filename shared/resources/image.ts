// How an image kind is driven: by the backend its spec names. Called by registry.ts, once for each dialect.
import { finalizers } from '#shared/api/names.ts';
import type { Backend } from '#shared/backends/backend.ts';
import type { Image } from '#shared/backends/image.ts';
import type { BackendRegistry, Registration } from '#shared/backends/registry.ts';
import type { ImageDialect, ImageObject } from '#shared/resources/dialect.ts';
import type { Driven, Planner, Refusal } from '#shared/resources/driven.ts';
import { fillable, refusalOfFaults, refusals } from '#shared/resources/fillable.ts';

const servedBy = (backends: BackendRegistry): readonly Backend[] =>
  Object.values<Registration>(backends).flatMap((registration) => (registration.served ? [registration.backend] : []));

const plannerOf = (backend: Backend): Planner<Image> => ({
  check: (kube, image) => backend.check(kube, image),
  plan: (image, seen, context) =>
    backend.initialize({ ...image, state: backend.updateVirtualSize(image, seen) ?? image.state }, seen, context),
  remove: (image, seen, context) => backend.delete(image, seen, context),
});

const refusalOf = (image: Image, backends: BackendRegistry): Refusal | undefined => {
  const registration = backends[image.backend];
  return registration.served ? refusalOfFaults(image) : { reason: refusals.backend, message: registration.because };
};

export const drivenImage = <T extends ImageObject>(dialect: ImageDialect<T>): Driven<T, Image> => ({
  ...fillable,
  kind: dialect.kind,
  read: (object) => dialect.toImage(object),
  toStatus: (object, image, state, now) => dialect.toStatus(object, image, state, now),
  sidecars: (backends) => servedBy(backends).flatMap(({ sidecars }) => sidecars),
  reads: (backends) => servedBy(backends).flatMap(({ reads }) => reads),
  refusalOf,
  plannerOf: ({ backend }, backends) => {
    const registration = backends[backend];
    return registration.served ? plannerOf(registration.backend) : undefined;
  },
  finalizerOf: () => finalizers.image,
});

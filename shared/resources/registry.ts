// The image kinds, one line each, and how an owner named by a child or an event is found among them.
import { apiVersionOf } from '#shared/api/object.ts';
import type { ImageDialect, ImageObject } from '#shared/resources/dialect.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { hyperCloudImages } from '#shared/resources/hypercloud-image/dialect.ts';

const erased = <T extends ImageObject>(dialect: ImageDialect<T>): ImageDialect => dialect as unknown as ImageDialect;

export const imageDialects: readonly ImageDialect[] = [erased(hyperCloudImages), erased(harvesterImages)];

/** `undefined` for kinds that are no image. */
export const dialectOf = (ref: { readonly apiVersion: string; readonly kind: string }): ImageDialect | undefined =>
  imageDialects.find(({ kind: { type } }) => apiVersionOf(type) === ref.apiVersion && type.kind === ref.kind);

/** By `<kind>.<group>`, as children name their owner. */
export const dialectOfGroupKind = (groupKind: string): ImageDialect | undefined =>
  imageDialects.find(({ kind: { type } }) => `${type.kind}.${type.group}` === groupKind);

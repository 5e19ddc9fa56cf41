// Parses the bodies of subresources that have a kind of their own.
import { decodeAs } from '../objects/decode.ts';
import type { Fields } from '../objects/object.ts';
import type { Subresource } from '../registry/resource.ts';
import { builtinSchema } from '../schema/builtin.ts';
import { readBody } from './body.ts';
import type { Call } from './call.ts';
import type { WriteOptions } from './options.ts';

/** The body of a subresource, as the kind it accepts. */
export const readAs = async (call: Call, sub: Subresource, options: WriteOptions): Promise<Fields> => {
  const group = sub.group ?? call.resource.group;
  const version = sub.version ?? call.resource.version;
  const schema = builtinSchema(group, version, sub.kind) ?? {
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
  };
  const body = (await readBody(call.request)) ?? {};
  return decodeAs(body, { group, version, kind: sub.kind }, schema, {
    fieldValidation: options.fieldValidation,
    warn: (text) => call.warnings.add(text),
  });
};

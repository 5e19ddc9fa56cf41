// What a person means by a name: a place that an image is made from or exported to, an image or a volume whose bytes are sent or taken.
import { type Call, type OptionSpec, type Values, textOf } from '#cli/command.ts';
import { findImage } from '#shared/catalogue/image.ts';
import { targetOf } from '#shared/catalogue/ticket.ts';
import type { TargetName } from '#shared/exchange/target-name.ts';

export const targetOptions = {
  kind: {
    type: 'string',
    value: 'KIND',
    help: 'what the name is of: image, datavolume or claim (image)',
    oneOf: ['image', 'datavolume', 'claim'],
  },
  'transfer-url': { type: 'string', value: 'URL', help: 'of the transfer function (the cluster says it)' },
  'transfer-ca': { type: 'string', value: 'FILE', help: 'one more certificate authority for the transfer function' },
  'transfer-insecure': { type: 'boolean', help: 'do not verify the certificate of the transfer function' },
} as const satisfies Readonly<Record<string, OptionSpec>>;

export const kindOf = (values: Values): 'image' | 'datavolume' | 'claim' =>
  (textOf(values, 'kind') as 'image' | 'datavolume' | 'claim' | undefined) ?? 'image';

/** The object whose bytes are taken. */
export const sourceTarget = async ({ kube, namespace, values }: Call, wanted: string): Promise<TargetName> => {
  const kind = kindOf(values);
  if (kind === 'datavolume') return { plural: 'datavolumes', namespace, name: wanted };
  if (kind === 'claim') return { plural: 'persistentvolumeclaims', namespace, name: wanted };
  return targetOf(await findImage(kube, namespace, wanted));
};

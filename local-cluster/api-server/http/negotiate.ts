// Content negotiation: the form (object, Table, PartialObjectMetadata) and encoding (JSON, YAML) that a client requests.
import { notAcceptable } from '../status/status.ts';

export type Shape = 'object' | 'table' | 'partial';
export type Encoding = 'json' | 'yaml';

export interface Negotiated {
  readonly shape: Shape;
  readonly encoding: Encoding;
  /** The media type with its parameters, as returned in the response. */
  readonly contentType: string;
}

interface MediaType {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string>>;
}

const parseMediaType = (text: string): MediaType => {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim());
  return {
    type: type.toLowerCase(),
    parameters: Object.fromEntries(parameters.map((part) => part.split('=', 2).map((item) => item.trim()))) as Record<
      string,
      string
    >,
  };
};

export const parseAccept = (accept: string | null): MediaType[] =>
  accept === null || accept.trim() === '' ? [{ type: '*/*', parameters: {} }] : accept.split(',').map(parseMediaType);

const encodings: Readonly<Record<string, Encoding>> = {
  'application/json': 'json',
  'application/yaml': 'yaml',
  '*/*': 'json',
  'application/*': 'json',
};

const shapes: Readonly<Record<string, Shape>> = {
  Table: 'table',
  PartialObjectMetadata: 'partial',
  PartialObjectMetadataList: 'partial',
};

const shapeOf = ({ parameters }: MediaType): Shape | undefined => {
  const as = parameters['as'];
  if (as === undefined) return 'object';
  return parameters['g'] === 'meta.k8s.io' && ['v1', 'v1beta1'].includes(parameters['v'] ?? '')
    ? shapes[as]
    : undefined;
};

/** Supported media types, as listed in a 406. */
const spoken = ['application/json', 'application/yaml'];

const pick = (media: MediaType): Negotiated | undefined => {
  const encoding = encodings[media.type];
  const shape = shapeOf(media);
  if (encoding === undefined || shape === undefined) return undefined;
  return { shape, encoding, contentType: encoding === 'json' ? 'application/json' : 'application/yaml' };
};

/** The first supported form in the client's order; throws a 406 when there is none. */
export const negotiate = (accept: string | null): Negotiated => {
  const found = parseAccept(accept)
    .map(pick)
    .find((item) => item !== undefined);
  if (found === undefined) throw notAcceptable(spoken);
  return found;
};

// The protobuf form of the OpenAPI v2 document, which kubectl asks for only when v3 does not know a kind. It lists nothing: every
// kind is in v3, so what kubectl looks for here does not exist.

/** As clients ask for it, and as it is labelled. */
export const protobufV2Accept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
export const protobufV2Type = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

const text = (number: number, value: Buffer | string): Buffer => {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
};

/** `swagger`, and `info` with title and version; each is shorter than 128 bytes. */
export const emptyProtobufV2 = (): Buffer =>
  Buffer.concat([text(1, '2.0'), text(2, Buffer.concat([text(1, 'Kubernetes'), text(2, 'v1')]))]);

// The documents of an exported image: its configuration and its manifest, which say what it is. Pure.

export const manifestType = 'application/vnd.oci.image.manifest.v1+json';
export const configType = 'application/vnd.oci.image.config.v1+json';
export const layerType = 'application/vnd.oci.image.layer.v1.tar';

/** What an image says of itself. */
export interface ImageFacts {
  readonly annotations: Readonly<Record<string, string>>;
  /** `NAME=value`. */
  readonly environment: readonly string[];
  /** RFC 3339; the same in each attempt. */
  readonly created?: string | undefined;
}

/** Of the OCI image specification. The revision is the content: that of the qcow2 file. */
export const describe = ({ annotations, created }: ImageFacts, sha256: string): Readonly<Record<string, string>> => ({
  ...annotations,
  ...(created === undefined ? {} : { 'org.opencontainers.image.created': created }),
  'org.opencontainers.image.revision': `sha256:${sha256}`,
});

interface ConfigFacts {
  readonly about: ImageFacts;
  readonly architecture: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly layerDigest: string;
}

export const configOf = ({ about: { created, environment }, architecture, labels, layerDigest }: ConfigFacts): Buffer =>
  Buffer.from(
    JSON.stringify({
      ...(created === undefined ? {} : { created }),
      architecture,
      os: 'linux',
      config: { Labels: labels, ...(environment.length === 0 ? {} : { Env: environment }) },
      rootfs: { type: 'layers', diff_ids: [layerDigest] },
    }),
  );

export const manifestOf = (parts: object): Buffer =>
  Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: manifestType, ...parts }));

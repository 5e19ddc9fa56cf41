// The keys that a policy names, out of its ConfigMap.
import { type SignatureRefusal, refuse } from '#shared/golden/signature/outcome.ts';

export interface ConfigMapData {
  readonly data?: Readonly<Record<string, string>> | undefined;
  /** Base64. */
  readonly binaryData?: Readonly<Record<string, string>> | undefined;
}

/** A ConfigMap of the policy's namespace; `undefined` where it does not exist. */
export type ReadConfigMap = (name: string) => Promise<ConfigMapData | undefined>;

export const contentsOf = async (read: ReadConfigMap, name = ''): Promise<readonly Buffer[] | SignatureRefusal> => {
  const found = await read(name);
  if (found === undefined)
    return refuse('InvalidPolicy', `ConfigMap ${name} of the policy does not exist: create it with the public keys`);
  const { data = {}, binaryData = {} } = found;
  return [
    ...Object.values(data).map((text) => Buffer.from(text)),
    ...Object.values(binaryData).map((text) => Buffer.from(text, 'base64')),
  ];
};

export const textsOf = async (read: ReadConfigMap, name?: string): Promise<readonly string[] | SignatureRefusal> => {
  const contents = await contentsOf(read, name);
  return 'is' in contents ? contents : contents.map((bytes) => bytes.toString('utf8'));
};

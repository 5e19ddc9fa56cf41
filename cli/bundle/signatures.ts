// Whether the images of a bundle are signed as those who load it ask: by the policies of their cluster, or by keys they give. What a bundle says of
// itself is no ground for trust: its policies may ask for more, and never name the keys.
import type { ReadBundle } from '#cli/bundle/check.ts';
import { inBundle } from '#cli/bundle/client.ts';
import { type BundledImage, refusal } from '#cli/bundle/layout.ts';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import type { SignatureRule } from '#shared/api/bullion/verify.ts';
import { configMaps } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { judgeByKeys, judgeOf, verifyImage } from '#shared/golden/signature/cosign/cosign.ts';
import type { Judge } from '#shared/golden/signature/cosign/identity.ts';
import { readPublicKeys } from '#shared/golden/signature/cosign/keys.ts';
import type { SignatureRefusal, Verified } from '#shared/golden/signature/outcome.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

export interface Trust {
  /** Public keys in PEM: each image must be signed by one of them. */
  readonly keys: readonly string[];
  /** The cluster whose policies count; default: none. */
  readonly cluster?: { readonly kube: Pick<KubeClient, 'get' | 'listAll'>; readonly namespace: string } | undefined;
}

interface Asked {
  readonly policy: string;
  readonly rule: SignatureRule;
}

/** Policies of the cluster with this name, or whose channels have a DataSource of the image. Pure. */
export const policiesFor = (
  image: BundledImage,
  policies: readonly GoldenImagePolicy[],
): readonly GoldenImagePolicy[] =>
  policies.filter(
    ({ metadata, spec }) =>
      metadata.name === image.policy || spec.channels.some(({ dataSource }) => image.dataSources.includes(dataSource)),
  );

/** What the policy in the bundle asks for. */
const askedInBundle = ({ document }: ReadBundle, { policy }: BundledImage): Asked | undefined => {
  const object = document.objects.find(
    ({ kind, metadata }) => kind === 'GoldenImagePolicy' && metadata.name === policy,
  );
  const parsed = object && goldenImagePolicyKind.spec.safeParse(object.spec);
  const spec = parsed?.success === true ? (parsed.data as GoldenImagePolicy['spec']) : undefined;
  const rule = spec?.verify?.signature;
  return rule === undefined || policy === undefined ? undefined : { policy, rule };
};

/** Keys in the bundle itself prove nothing. */
const withoutOwnKeys = ({ policy, rule }: Asked): Asked => {
  if (rule.cosign?.keys?.inline === undefined) return { policy, rule };
  throw refusal(
    `policy ${policy} in the bundle asks for a signature, by a key that is in the bundle, too: give the key that you trust with --key`,
  );
};

const rulesFor = (
  bundle: ReadBundle,
  image: BundledImage,
  policies: readonly GoldenImagePolicy[],
): readonly Asked[] => {
  const own = policiesFor(image, policies);
  const rules = own.flatMap(({ metadata: { name }, spec }) => {
    const rule = spec.verify?.signature;
    return rule === undefined ? [] : [{ policy: name, rule }];
  });
  if (own.length > 0) return rules;
  const asked = askedInBundle(bundle, image);
  return asked === undefined ? [] : [withoutOwnKeys(asked)];
};

const readMap =
  ({ cluster }: Trust, policy: string) =>
  async (name: string) => {
    if (cluster === undefined)
      throw refusal(`policy ${policy} asks for a signature: give the public key that you trust with --key`);
    return cluster.kube.get(configMaps, { namespace: cluster.namespace, name });
  };

const judgeFor = async (trust: Trust, { policy, rule }: Asked): Promise<Judge | SignatureRefusal> => {
  if (rule.cosign === undefined)
    throw refusal(
      `policy ${policy} asks for a signed checksum file, which stays with its web server: sign the bundle with --sign-with, and load it with --key`,
    );
  return judgeOf(rule.cosign, readMap(trust, policy));
};

const requireSigned = async (
  { client }: ReadBundle,
  image: BundledImage,
  { judge, rule, by }: { judge: Judge | SignatureRefusal; rule?: SignatureRule | undefined; by: string },
): Promise<Verified> => {
  const { digest, indexDigest } = image;
  const asked = { image: inBundle, digest, sourceDigest: indexDigest, attestations: rule?.cosign?.attestations };
  const outcome = 'is' in judge ? judge : await verifyImage(client, asked, judge);
  if (outcome.is === 'verified') return outcome;
  if (outcome.reason === 'Unsigned')
    throw refusal(
      `${image.name} (${digest}) is not signed, and ${by} asks for a signature: save the bundle with --sign-with, or an image that its publisher signed`,
      image.name,
    );
  throw refusal(
    `${image.name} (${digest}) is not signed as ${by} asks: ${outcome.reason}: ${outcome.message}`,
    image.name,
  );
};

const keysJudge = (keys: readonly string[]): Judge => {
  const read = readPublicKeys(keys);
  const [problem] = read.problems;
  if (problem !== undefined || read.keys.length === 0)
    throw new InvalidInput(`--key ${problem ?? 'has no PEM block PUBLIC KEY'}`);
  return judgeByKeys(read.keys);
};

export interface Checked {
  /** A line for each signature that was asked for. */
  readonly lines: readonly string[];
  /** Whether one of the keys signed all of the bundle, objects included. */
  readonly isWhole: boolean;
}

/** Throws InvalidInput for the first image that is not signed as it should be. */
export const checkSignatures = async (bundle: ReadBundle, trust: Trust): Promise<Checked> => {
  const given = trust.keys.length === 0 ? undefined : keysJudge(trust.keys);
  const whole = given && (await verifyImage(bundle.client, { image: inBundle, digest: bundle.digest }, given));
  if (whole?.is === 'verified') return { lines: [whole.message], isWhole: true };
  return { lines: await checkImages(bundle, trust, given), isWhole: false };
};

const checkImages = async (bundle: ReadBundle, trust: Trust, given: Judge | undefined): Promise<readonly string[]> => {
  const messages: string[] = [];
  const policies: GoldenImagePolicy[] = [];
  if (trust.cluster !== undefined)
    for await (const policy of trust.cluster.kube.listAll(goldenImagePolicyKind.type, {
      namespace: trust.cluster.namespace,
    }))
      policies.push(policy);
  for (const image of bundle.document.images) {
    if (given !== undefined) {
      messages.push((await requireSigned(bundle, image, { judge: given, by: '--key' })).message);
      continue;
    }
    for (const asked of rulesFor(bundle, image, policies)) {
      const judge = await judgeFor(trust, asked);
      const signed = await requireSigned(bundle, image, { judge, rule: asked.rule, by: `policy ${asked.policy}` });
      messages.push(signed.message);
    }
  }
  return messages;
};

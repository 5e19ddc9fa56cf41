// Signatures without keys of their own: a certificate authority knew the signer for a moment, and a log or a time stamp says when that was. Who is
// trusted comes from the policy; no service is asked. The libraries are loaded when the first such signature is looked at.
import type { TrustMaterial } from '@sigstore/verify';
import type { CosignRule } from '#shared/api/bullion/verify.ts';
import type { Statement } from '#shared/golden/signature/cosign/statement.ts';
import { type ReadConfigMap, refuse, type SignatureRefusal, textsOf } from '#shared/golden/signature/outcome.ts';
import { messageOf } from '#shared/runtime/errors.ts';

/** Who signed one statement, or why nobody that is trusted did. `where` names the signature. */
export type Judge = (statement: Statement, where: string) => Promise<Signer | SignatureRefusal>;

interface Signer {
  readonly is: 'signer';
  readonly by: string;
  readonly signedAt?: string | undefined;
}

interface Identity {
  readonly issuer: string;
  readonly isSubject: (subject: string) => boolean;
  readonly words: string;
}

const load = async () => ({
  verify: await import('@sigstore/verify'),
  bundle: await import('@sigstore/bundle'),
  specs: await import('@sigstore/protobuf-specs'),
});

type Wanted = NonNullable<CosignRule['identities']>[number];

const identityOf = ({ issuer, subject, subjectRegExp }: Wanted): Identity | SignatureRefusal => {
  if (subjectRegExp === undefined) {
    return { issuer, isSubject: (found) => found === subject, words: `${subject} of ${issuer}` };
  }
  try {
    const pattern = new RegExp(`^(?:${subjectRegExp})$`);
    return { issuer, isSubject: (found) => pattern.test(found), words: `${subjectRegExp} of ${issuer}` };
  } catch (error) {
    return refuse(
      'InvalidPolicy',
      `subjectRegExp in cosign.identities is not a regular expression: ${messageOf(error)}`,
    );
  }
};

const trustOf = async (text: string, where: string): Promise<TrustMaterial | SignatureRefusal> => {
  const { verify, specs } = await load();
  try {
    const trust = verify.toTrustMaterial(specs.TrustedRoot.fromJSON(JSON.parse(text)));
    if (trust.certificateAuthorities.length > 0 && trust.tlogs.length + trust.timestampAuthorities.length > 0)
      return trust;
  } catch {
    // Reported below.
  }
  return refuse(
    'InvalidPolicy',
    `${where} is not a trust root with certificate authorities, and transparency logs or time stamp authorities: put in the trusted_root.json of your sigstore`,
  );
};

/** By identities and a trust root: the judge, or what is wrong with the policy. */
export const judgeByIdentities = async (rule: CosignRule, read: ReadConfigMap): Promise<Judge | SignatureRefusal> => {
  const { identities = [], trustRoot } = rule;
  if (identities.length === 0 || trustRoot === undefined)
    return refuse('InvalidPolicy', 'cosign names neither keys, nor identities with a trustRoot');
  const texts = await textsOf(read, trustRoot.configMap);
  if ('is' in texts) return texts;
  const trust = await trustOf(texts[0] ?? '', `ConfigMap ${trustRoot.configMap}`);
  if ('is' in trust) return trust;
  const wanted: Identity[] = [];
  for (const identity of identities.map(identityOf)) {
    if ('is' in identity) return identity;
    wanted.push(identity);
  }
  return (statement, where) => judge(statement, where, { trust, wanted });
};

/** As many of each kind of proof as the trust root knows somebody for; when it was signed must be proven in any case. */
const thresholdsOf = ({ tlogs, ctlogs }: TrustMaterial) => ({
  tlogThreshold: Math.min(1, tlogs.length),
  ctlogThreshold: Math.min(1, ctlogs.length),
  timestampThreshold: 1,
});

const judge = async (
  statement: Statement,
  where: string,
  { trust, wanted }: { readonly trust: TrustMaterial; readonly wanted: readonly Identity[] },
): Promise<Signer | SignatureRefusal> => {
  if (statement.bundle === undefined)
    return refuse('WrongKey', `${where} was made with a key, without a certificate: name the key in cosign.keys`);
  const { verify, bundle } = await load();
  try {
    const read = bundle.bundleFromJSON(statement.bundle);
    const entity = verify.toSignedEntity(read, statement.signed);
    if (entity.key.$case !== 'certificate')
      return refuse('WrongKey', `${where} was made with a key, without a certificate: name the key in cosign.keys`);
    const { identity } = new verify.Verifier(trust, thresholdsOf(trust)).verify(entity);
    const { subjectAlternativeName: subject = '', extensions: { issuer = '' } = {} } = identity ?? {};
    const by = `${subject} of ${issuer}`;
    const isWanted = wanted.some((one) => one.issuer === issuer && one.isSubject(subject));
    if (!isWanted)
      return refuse(
        'WrongIdentity',
        `${where} is by ${by}, not by ${wanted.map(({ words }) => words).join(', nor by ')}`,
      );
    const seconds = Number(read.verificationMaterial.tlogEntries[0]?.integratedTime ?? Number.NaN);
    const signedAt = Number.isNaN(seconds) ? undefined : new Date(seconds * 1000).toISOString();
    return { is: 'signer', by, signedAt };
  } catch (error) {
    return refuse('BadSignature', `${where} is not one that the trust root vouches for (${messageOf(error)})`);
  }
};

// What a rule trusts, read from its ConfigMaps: keys, or authorities that know the signers. Called where signatures are verified, and where it is
// reported whether they could be.
import type { SignatureRule } from '#shared/api/bullion/verify.ts';
import { judgeOf } from '#shared/golden/signature/cosign/cosign.ts';
import type { SignatureFormat } from '#shared/golden/signature/files.ts';
import { minisign, readMinisignKeys } from '#shared/golden/signature/minisign.ts';
import { openPgp, readKeyring } from '#shared/golden/signature/openpgp.ts';
import { type ReadConfigMap, type SignatureRefusal, type WhyUnusable, contentsOf } from './outcome.ts';

/** Of a rule for files. */
export const formatOf = async (
  { gpg, minisign: signify }: Pick<SignatureRule, 'gpg' | 'minisign'>,
  read: ReadConfigMap,
  now: () => number,
): Promise<SignatureFormat | SignatureRefusal> => {
  const { configMap } = (gpg ?? signify)?.keys ?? { configMap: '' };
  const contents = await contentsOf(read, configMap);
  if ('is' in contents) return contents;
  const where = `ConfigMap ${configMap}`;
  if (gpg === undefined) {
    const keys = readMinisignKeys(contents, where);
    return 'is' in keys ? keys : minisign(keys);
  }
  const keys = await readKeyring(contents, where);
  return 'is' in keys ? keys : openPgp(keys, now);
};

export const whyUnusable: WhyUnusable = async (rule, read) => {
  const found = await (rule.cosign === undefined ? formatOf(rule, read, Date.now) : judgeOf(rule.cosign, read));
  return 'is' in found ? found : undefined;
};

// An archive becomes the files of a volume: unpacked as it comes, valid once the whole of it was verified.
import { readTar } from '#shared/transfer/archive/tar.ts';
import type { Tree } from '#shared/transfer/archive/tree.ts';
import type { Pass, PassResult } from '#shared/transfer/pass.ts';
import { contentOf, verifiedDigests } from '#shared/transfer/published.ts';

export const importArchive = async (pass: Pass, tree: Tree): Promise<PassResult> => {
  const { meter, plan, signal, source } = pass;
  await meter.inspected(plan.inspection);
  meter.enter('Downloading', 97);
  await tree.prepare();
  const writtenBytes = await tree.unpack(readTar(contentOf(pass), { needsEnd: true }), signal);
  meter.enter('Verifying', 99);
  const digests = verifiedDigests(pass);
  await source.confirm?.();
  await tree.commit();
  return { digests, inspection: plan.inspection, writtenBytes };
};

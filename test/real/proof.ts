// Whether the current embedded API server was compared with a real one: a digest of all its inputs, written by `npm run test:real` when all tests that
// CI runs there have passed. Unchanged inputs need no second proof.
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';

/** The implementations of the two servers, the comparison, and the applied manifests. */
const inputs = [
  'local-cluster/{api-server,controllers,conformance,real-api-server,envtest}/**/*.{ts,mod,sum,json,yaml}',
  'infra/**/*.yaml',
  'infra/generate/{applied,installed,rotation}.test.ts',
  'test/real/files.ts',
] as const;

const path = 'test/real/proof.json';
const Proof = z.object({ inputs: z.string(), passed: z.int().positive() });
type Proof = z.infer<typeof Proof>;

/** SHA-256 over the names and bytes of all inputs. */
export const digestOfInputs = (): string => {
  const digest = createHash('sha256');
  for (const file of [...new Set(globSync([...inputs]))].toSorted()) {
    const bytes = readFileSync(file);
    digest.update(`${file}\n${bytes.byteLength}\n`).update(bytes);
  }
  return digest.digest('hex');
};

/** `undefined` if the inputs have changed since, or were never proven. */
export const readProof = (): Proof | undefined => {
  const proof = existsSync(path) ? Proof.parse(JSON.parse(readFileSync(path, 'utf8'))) : undefined;
  return proof?.inputs === digestOfInputs() ? proof : undefined;
};

export const writeProof = (passed: number): void =>
  writeFileSync(path, `${JSON.stringify({ inputs: digestOfInputs(), passed } satisfies Proof, undefined, 2)}\n`);
